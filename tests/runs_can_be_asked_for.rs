//! Questions over many runs: filters, pages, search, statistics; and that the answers are the
//! same whoever has the index.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::Value;
use support::{Home, Server, wait_for};

/// A run in which a tool is called with this text.
fn call(home: &Home, tool: &str, text: &str) {
    let request = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\
         \"arguments\":{{\"text\":\"{text}\",\"n\":18446744073709551616,\"f\":1.0}}}}}}\n"
    );
    let record = home.record().option("--server").option("notes");
    assert_eq!(record.talk(&Server::echo(), request).code, 0);
}

fn several(home: &Home) {
    for number in 0..5 {
        let tool = if number % 2 == 0 { "even" } else { "odd" };
        call(home, tool, &format!("word{number} and a zebra"));
    }
    wait_for("the runs' ends", || {
        home.runs().iter().all(|run| !run.entry.live).then_some(())
    });
}

#[test]
fn a_list_goes_on_where_it_ended_and_shows_each_run_once() {
    let home = Home::new();
    several(&home);
    let all = home.run_ids();
    assert_eq!(all.len(), 5);
    for format in ["jsonl", "text"] {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut words = vec!["runs", "-n", "2", "--format", format];
            if let Some(cursor) = &after {
                words.extend(["--after", cursor]);
            }
            let said = home.run(&words);
            assert_eq!(said.code, 0, "{said:?}");
            let lines = said.out.lines().skip(usize::from(format == "text"));
            seen.extend(lines.map(|line| match format {
                "text" => line[..8].to_owned(),
                _ => {
                    let run: Value = serde_json::from_str(line).unwrap();
                    run["run"].as_str().unwrap()[..8].to_owned()
                }
            }));
            match said.err.strip_prefix("more: --after ") {
                Some(cursor) => after = Some(cursor.trim_end().to_owned()),
                None => break,
            }
        }
        let short: Vec<&str> = all.iter().map(|id| &id[..8]).collect();
        assert_eq!(seen, short, "{format}");
    }
    let said = home.run(["runs", "--after", "x"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("hint: a list that goes on"), "{said:?}");
}

#[test]
fn a_search_finds_words_and_keeps_every_digit() {
    let home = Home::new();
    several(&home);
    let found = home.ok(["search", "word3", "--format", "jsonl"]);
    // What the server says back is a step, too.
    assert_eq!(found.lines().count(), 2, "{found}");
    let digits = "\"n\":18446744073709551616,\"f\":1.0";
    assert!(found.contains(digits), "{found}");
    assert!(
        home.ok(["search", "word3", "--format", "json"])
            .contains(digits)
    );
    // Whole words, unless parts are asked for; in what matches, if that is said.
    assert_eq!(home.ok(["search", "zebr", "--format", "jsonl"]), "");
    let parts = home.ok(["search", "zebr", "--part", "--format", "jsonl"]);
    assert_eq!(parts.lines().count(), 10, "{parts}");
    let odd = home.ok(["search", "zebra", "~t odd", "--format", "jsonl"]);
    assert_eq!(odd.lines().count(), 4, "{odd}");
    let last = home.ok(["search", "zebra", "--last", "1", "--format", "jsonl"]);
    assert_eq!(last.lines().count(), 2, "{last}");
    // Sealed files are asked by their word filters.
    home.ok(["retention", "apply"]);
    let sealed = home.ok(["search", "zebra", "~t odd", "--format", "jsonl"]);
    assert_eq!(sealed, odd);
}

#[test]
fn a_search_shows_what_was_found_and_where_a_filter_is_wrong() {
    let home = Home::new();
    call(
        &home,
        "t",
        &format!("{}needle{}", "a ".repeat(300), " b".repeat(300)),
    );
    let found = home.ok(["search", "needle", "-s", "30"]);
    let steps: Vec<&str> = found.lines().skip(1).collect();
    assert_eq!(steps.len(), 2, "{found}");
    assert!(steps[0].contains("a needle b"), "{found}");
    assert!(steps[0].chars().count() < 100, "{found}");
    let said = home.run(["search", "haystack"]);
    assert_eq!((said.code, &said.out[..]), (0, ""));
    assert_eq!(said.err, "nothing found of haystack as whole words\n");
    for text in ["", "  "] {
        let said = home.run(["search", text]);
        assert_eq!((said.code, &said.out[..]), (2, ""), "{said:?}");
        assert!(
            said.err.contains("the text to look for is empty"),
            "{said:?}"
        );
    }
    for filter in ["~e & ~tool x", "a) | (b"] {
        let alone = home.run(["runs", filter]);
        let said = home.run(["search", "needle", filter]);
        assert_eq!((said.code, &said.err), (2, &alone.err), "{said:?}");
    }
    // What would not be used is refused.
    for option in ["--frames", "--http", "--frame=1"] {
        let said = home.run(["show", "latest", "~e", option]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("cannot be used with"), "{said:?}");
    }
}

#[test]
fn answers_are_the_same_with_a_daemon_and_without() {
    let home = Home::new();
    several(&home);
    let questions: [&[&str]; 8] = [
        &["runs"],
        &["runs", "--format", "json"],
        &["runs", "-n", "2", "--format", "jsonl"],
        &["runs", "~t even", "--format", "jsonl"],
        &["runs", "--failed"],
        &["search", "zebra"],
        &["stats", "~t odd"],
        &["show", "latest", "--format", "json"],
    ];
    let ask = || questions.map(|words| home.run(words));
    let before: Vec<_> = ask().map(|said| (said.code, said.out, said.err)).into();
    assert!(before[3].1.lines().count() == 3, "{before:?}");
    let _daemon = home.daemon("");
    wait_for("the daemon to have the index", || {
        let status = home.json(["index", "status", "--format", "json"]);
        (!status["owner"].is_null()).then_some(())
    });
    let with: Vec<_> = ask().map(|said| (said.code, said.out, said.err)).into();
    for ((before, with), words) in before.iter().zip(&with).zip(questions) {
        assert_eq!(before, with, "{words:?}");
    }
}
