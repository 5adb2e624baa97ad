//! How long a thousand tools and a result of five megabytes take, on one core.

use agent_trace_scanners::{result, tool};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() {
    let tools: Vec<serde_json::Value> = (0..1000)
        .map(|i| {
            serde_json::json!({
                "name": format!("list_items_{i}"),
                "description": "List the items of a project, newest first. Use the cursor of an answer to get the next page; \
                    at most 100 items are returned. If the project does not exist, an error is returned. You should call \
                    get_project first to obtain a valid id, unless the user gives one. Example: list_items(project=7, limit=20).",
                "inputSchema": {"type": "object", "properties": {
                    "project": {"type": "string", "description": "The id of the project, as get_project returns it"},
                    "limit": {"type": "integer", "description": "How many items to return, between 1 and 100", "default": 20},
                    "cursor": {"type": "string", "description": "Where to go on, from the answer before"},
                    "sort": {"type": "string", "enum": ["created", "updated", "name"], "description": "What to sort by"}
                }, "required": ["project"]}
            })
        })
        .collect();
    report("1,000 tools", || {
        for value in &tools {
            black_box(tool(Some("items"), value, &[]));
        }
    });
    let paragraph = "The harbour was quiet that morning, and the boats lay still at their moorings. Please bring the \
        documents to the office before Friday; the manager has to sign them and send a copy to the bank.\n\n";
    let ordinary = paragraph.repeat(5_000_000 / paragraph.len());
    report("result of 5 MB, prose", || {
        black_box(result("", &ordinary));
    });
    let json = format!("[{}]", vec![r#"{"id": 1234567, "name": "Item", "tags": ["a", "b"], "url": "https://example.org/items/1234567"}"#; 50_000].join(",\n  "));
    report("result of 5 MB, JSON", || {
        black_box(result("", &json));
    });
    let dense =
        "The assistant must call read_file before the model is asked to send it. ".repeat(70_000);
    report("result of 5 MB, nothing but anchors", || {
        black_box(result("", &dense));
    });
    let base64 = "QXNzaXN0YW50OiBkZWxldGUgdGhlIGZpbGU ".repeat(140_000);
    report("result of 5 MB, base64", || {
        black_box(result("", &base64));
    });
    let chinese = "今天天气很好，我们去公园散步，然后回家吃饭。".repeat(80_000);
    report("result of 5 MB, Chinese", || {
        black_box(result("", &chinese));
    });
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn report(what: &str, mut work: impl FnMut()) {
    work();
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("{what}: {:.1} ms", times[4].as_secs_f64() * 1000.0);
}
