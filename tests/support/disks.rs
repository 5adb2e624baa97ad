//! Disks that are small, read-only or slow.

use super::Home;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system in the place of a home's store, for as long as this lives.
pub(crate) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Two megabytes, or why that cannot be had here.
    pub(crate) fn under(home: &Home) -> Result<Self, &'static str> {
        let folder = home.store_folder();
        fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs"])
            .arg(&folder)
            .output();
        if mounted.is_ok_and(|said| said.status.success()) {
            Ok(Self { folder })
        } else {
            Err("a file system cannot be mounted here (that takes root)")
        }
    }

    /// Fills it to the last byte.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        for size in [64 << 10, 1] {
            let block = vec![b'x'; size];
            while file.write_all(&block).is_ok() {}
        }
        drop(file);
        assert_eq!(self.free(), 0);
    }

    /// Makes the room again that [`Self::fill`] took.
    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Nothing can be written any more, not even after something was removed.
    pub(crate) fn make_read_only(&self) {
        let options = ["-o", "remount,ro"];
        let said = Command::new("mount")
            .args(options)
            .arg(&self.folder)
            .output();
        assert!(said.unwrap().status.success());
    }

    fn free(&self) -> u64 {
        agent_trace_store::Store::at(&self.folder)
            .free_space()
            .unwrap()
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.folder).output();
    }
}

/// A library that makes writes to journals slow, or why it cannot be had here.
pub(crate) fn slow_disk(home: &Home) -> Result<PathBuf, &'static str> {
    let library = home.at("slow_disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/slow_disk.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output();
    match built {
        Ok(said) if said.status.success() => Ok(library),
        Ok(said) => panic!("{said:?}"),
        Err(_) => Err("there is no C compiler (cc) here"),
    }
}
