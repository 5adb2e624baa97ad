//! tmp
#![allow(clippy::print_stdout, clippy::print_stderr)]
#[path = "common/generate.rs"]
mod generate;
use agent_trace_store::Store;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runs: u64 = args[1].parse().unwrap();
    let store = Store::at(&args[2]);
    let t = std::time::Instant::now();
    let made = generate::generate(
        &store,
        generate::Plan {
            runs,
            events: runs * 100,
            seed: 1,
        },
        2,
    )
    .unwrap();
    let s = t.elapsed().as_secs_f64();
    println!(
        "{made:?}\n{s:.2} s, {:.0} events/s, {:.0} B per event",
        made.events as f64 / s,
        made.raw as f64 / made.events as f64
    );
    if args.len() > 3 {
        let t = std::time::Instant::now();
        let bytes = generate::seal(&store, 2).unwrap();
        println!(
            "sealed {:.3} of raw, {:.1} s",
            bytes as f64 / made.raw as f64,
            t.elapsed().as_secs_f64()
        );
    }
}
