//! Small failures with a known culprit, one line of reasoning each.

use super::testing::ranked;
use crate::testing::Tale;
use agent_trace_model::Outcome;
use agent_trace_model::story::Standing;

/// The place of the culprit's step among the suspects, from 1.
fn place(tale: Tale, culprit: usize) -> Option<usize> {
    let ranked = ranked(&tale.told());
    let place = ranked.steps().iter().position(|step| *step == culprit);
    place.map(|place| place + 1)
}

fn work() -> Tale {
    Tale::new()
        .request("initialize", "{}")
        .result("{}")
        .call("list_projects", "{}")
        .text(r#"[{"id":"prj-100","name":"garden"},{"id":"prj-200","name":"house"}]"#)
}

fn report(tale: Tale) -> Tale {
    tale.call("get_template", r#"{"name":"weekly"}"#)
        .text("Dear all, this week …")
        .call("send_mail", r#"{"to":"all","text":"Everything is done."}"#)
        .text(r#"{"sent":true}"#)
}

#[test]
fn an_empty_answer_long_before_the_end() {
    let empty = work()
        .call("search_issues", r#"{"project":"prj-100","state":"clsed"}"#)
        .text(r#"{"total":0,"issues":[]}"#)
        .call("get_user", r#"{"name":"ada"}"#)
        .text(r#"{"name":"ada","mail":"ada@example.com"}"#);
    assert_eq!(place(report(empty), 3), Some(1));
}

#[test]
fn an_error_in_a_document_that_counts_as_well() {
    let swallowed = work()
        .call("run_query", r#"{"project":"prj-100","q":"open"}"#)
        .text(r#"{"error":{"code":"RATE_LIMITED","message":"slow down"},"rows":[]}"#);
    assert_eq!(place(report(swallowed), 3), Some(1));
}

#[test]
fn an_id_that_was_deleted() {
    let stale = work()
        .call("delete_project", r#"{"project":"prj-100"}"#)
        .text(r#"{"deleted":true}"#)
        .call("add_task", r#"{"project":"prj-100","text":"water"}"#)
        .tool_error("project prj-100 not found");
    let place = place(stale, 4);
    assert_eq!(place, Some(1));
}

#[test]
fn a_document_that_is_cut_off() {
    let cut = work()
        .call("export", r#"{"project":"prj-100"}"#)
        .text(r#"{"tasks":[{"id":1,"text":"water"},{"id":2,"te"#);
    assert_eq!(place(report(cut), 3), Some(1));
}

#[test]
fn a_time_out_with_noise_around_it() {
    let noise = work()
        .call("get_user", r#"{"name":"bob"}"#)
        .tool_error("try again")
        .call("get_user", r#"{"name":"bob"}"#)
        .text(r#"{"name":"bob"}"#)
        .call("build", r#"{"project":"prj-200"}"#)
        .outcome(Outcome::Timeout)
        .call("read_log", r#"{"project":"prj-200"}"#)
        .text("warning: could not load plugin, failed to find cache");
    assert_eq!(place(report(noise), 5), Some(1));
}

#[test]
fn a_crash_and_errors_because_of_it() {
    let crash = work()
        .call("import", r#"{"file":"big.csv"}"#)
        .outcome(Outcome::Crashed)
        .session(|session| session.standing = Standing::Crashed)
        .on("mail")
        .call("send", r#"{"text":"import is done, see prj-300"}"#)
        .tool_error("no such project: prj-300");
    assert_eq!(place(crash, 3), Some(1));
}

#[test]
fn retries_with_other_arguments() {
    let mut storm = work();
    for wait in [1, 2, 4, 8] {
        storm = storm
            .call(
                "lock",
                &format!("{{\"project\":\"prj-100\",\"wait\":{wait}}}"),
            )
            .tool_error("locked by another session");
    }
    assert_eq!(place(report(storm), 3), Some(1));
}

#[test]
fn a_wrong_answer_that_is_used_at_once() {
    // The search gave the id of something else; the call that used it tells so.
    let wrong = work()
        .call("find_project", r#"{"name":"gardn"}"#)
        .text(r#"{"id":"prj-9917","name":"gard-archive"}"#)
        .call("add_task", r#"{"project":"prj-9917","text":"water"}"#)
        .tool_error("prj-9917 is archived");
    assert!(place(wrong.clone(), 3).is_some_and(|place| place <= 2));
    assert!(place(wrong, 4).is_some_and(|place| place <= 2));
}

#[test]
fn a_page_of_many() {
    let page = work()
        .call("list_tasks", r#"{"project":"prj-100","page":1}"#)
        .text("task 1: water\ntask 2: weed\nShowing 2 of 57")
        .call("close_task", r#"{"task":"task 2"}"#)
        .text("closed");
    assert_eq!(place(report(page), 3), Some(1));
}

#[test]
fn a_file_that_speaks_of_errors_is_no_culprit() {
    let noise = work()
        .call("read_file", r#"{"path":"README.md"}"#)
        .text("# Tool\nRaises ValueError if it failed. Exception handling cannot be mocked.")
        .call("search_issues", r#"{"label":"bgu"}"#)
        .text("No issues found");
    assert_eq!(place(report(noise), 4), Some(1));
}

#[test]
fn an_empty_folder_before_something_that_is_not_allowed() {
    let denied = Tale::new()
        .call("list_directory", r#"{"path":"/work"}"#)
        .text("")
        .call("read_text_file", r#"{"path":"/etc/hostname"}"#)
        .tool_error("Access denied - path outside allowed directories: /etc/hostname");
    assert_eq!(place(denied, 2), Some(1));
}
