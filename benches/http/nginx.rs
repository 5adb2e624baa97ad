//! The floor: nginx as a plain reverse proxy with one worker, nothing buffered, and
//! connections to the server kept.

use crate::Result;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to get it.
pub(crate) const MISSING: &str =
    "nginx is not installed (Debian: apt-get install nginx-light), so nothing is compared with it";

/// Where it is, if it is installed. Debian puts it where users have no PATH.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders
        .map(|folder| folder.join("nginx"))
        .find(|file| file.is_file())
}

/// Nginx between this address and this server, with its files in this folder.
pub(crate) fn command(
    nginx: &Path,
    folder: &Path,
    listen: SocketAddr,
    origin: SocketAddr,
) -> Result<Command> {
    fs::create_dir(folder)?;
    let folder_name = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {folder_name}/{name};\n"))
        .concat();
    let file = folder.join("nginx.conf");
    fs::write(
        &file,
        format!(
            "daemon off;
worker_processes 1;
pid {folder_name}/pid;
error_log {folder_name}/error.log;
events {{
    worker_connections 4096;
}}
http {{
    access_log off;
{temporary}    client_max_body_size 0;
    keepalive_requests 1000000;
    upstream origin {{
        server {origin};
        keepalive 64;
        keepalive_requests 1000000;
    }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_read_timeout 1h;
            proxy_send_timeout 1h;
        }}
    }}
}}
"
        ),
    )?;
    let mut command = Command::new(nginx);
    // The log that it opens before it reads its configuration.
    command.arg("-e").arg(folder.join("start.log"));
    command.arg("-c").arg(file);
    Ok(command)
}
