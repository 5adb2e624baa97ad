//! What was counted, as Prometheus reads it: text format 0.0.4.

use super::protocol::Relayed;
use agent_trace_proxy::http::Stats as HttpStats;
use agent_trace_proxy::http::stats::{BUCKETS_US, Histogram};
use agent_trace_store::recorder::{QUEUE_LIMIT, Stats};
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// The media type of that format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that is told.
pub(super) struct Counted<'a> {
    /// In seconds since 1970.
    pub(super) started: u64,
    pub(super) relayed: &'a HttpStats,
    pub(super) recorded: &'a Stats,
    pub(super) recording: bool,
    pub(super) listeners: &'a [Relayed],
}

/// All of it as text.
pub(super) fn text(counted: &Counted<'_>) -> String {
    let mut page = Page::default();
    let (relayed, recorded) = (counted.relayed, counted.recorded);
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);

    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.gauge("build_info", "What runs.");
    page.labelled("build_info", &version, 1);
    page.gauge("start_time_seconds", "When it started, since 1970.");
    page.value("start_time_seconds", counted.started);

    page.gauge("listener_up", "Whether a listener accepts connections.");
    for listener in counted.listeners {
        let up = u8::from(listener.error.is_none());
        page.labelled("listener_up", &labels(listener), up);
    }
    page.counter("listener_exchanges_total", "HTTP exchanges that began.");
    for listener in counted.listeners {
        let count = listener.totals.exchanges;
        page.labelled("listener_exchanges_total", &labels(listener), count);
    }
    page.gauge("listener_exchanges_open", "HTTP exchanges that are open.");
    for listener in counted.listeners {
        let count = listener.totals.open;
        page.labelled("listener_exchanges_open", &labels(listener), count);
    }

    page.gauge("connections_open", "Connections of clients that are open.");
    page.value("connections_open", read(&relayed.connections_open));
    page.counter("connections_total", "Connections of clients.");
    page.value("connections_total", read(&relayed.connections));
    page.gauge("exchanges_open", "HTTP exchanges that are open.");
    page.value("exchanges_open", read(&relayed.exchanges_open));
    page.counter("exchanges_total", "HTTP exchanges that began.");
    page.value("exchanges_total", read(&relayed.exchanges));
    page.counter(
        "refused_total",
        "Requests that were refused for their Host or Origin.",
    );
    page.value("refused_total", read(&relayed.refused));
    page.counter(
        "upstream_failures_total",
        "Exchanges in which the server could not be reached or broke off.",
    );
    page.value("upstream_failures_total", read(&relayed.upstream_failures));
    page.counter(
        "relayed_bytes_total",
        "Bytes of bodies that were forwarded.",
    );
    for (to, count) in [
        ("server", &relayed.bytes_to_server),
        ("client", &relayed.bytes_to_client),
    ] {
        page.labelled("relayed_bytes_total", &[("to", to)], read(count));
    }
    page.histogram(
        "relay_latency_seconds",
        "From when bytes of an answer were read to when they were written.",
        &relayed.latency,
    );

    page.gauge("recording", "Whether what is relayed is recorded.");
    page.value("recording", u8::from(counted.recording));
    let [to_server, to_client, _] = recorded.frames;
    page.counter("frames_total", "Messages that were recorded.");
    for (to, count) in [("server", to_server), ("client", to_client)] {
        page.labelled("frames_total", &[("to", to)], count);
    }
    let [to_server, to_client, _] = recorded.bytes;
    page.counter(
        "recorded_bytes_total",
        "Bytes that were taken over for recording.",
    );
    for (to, count) in [("server", to_server), ("client", to_client)] {
        page.labelled("recorded_bytes_total", &[("to", to)], count);
    }
    page.counter("gaps_total", "Gaps in the recording.");
    page.value("gaps_total", recorded.gaps);
    page.counter(
        "lost_bytes_total",
        "Bytes that are in no record because of gaps.",
    );
    page.value("lost_bytes_total", recorded.lost_bytes);
    page.gauge("queue_bytes", "Bytes that wait to be recorded.");
    page.value("queue_bytes", recorded.queued);
    page.gauge(
        "queue_limit_bytes",
        "How many may wait before some are lost.",
    );
    page.value("queue_limit_bytes", QUEUE_LIMIT);
    page.gauge("sessions_open", "MCP sessions that are open.");
    page.value("sessions_open", recorded.sessions_open);
    page.counter("sessions_total", "MCP sessions that began.");
    page.value("sessions_total", recorded.sessions);
    page.0
}

/// What tells a listener apart. The path of a server's URL may be a secret, and whoever can
/// connect reads this page: it is left out.
fn labels(listener: &Relayed) -> [(&'static str, &str); 2] {
    let to = &listener.to;
    let host = to.find("://").map_or(0, |at| at + 3);
    let path = to[host..].find('/').map_or(to.len(), |at| host + at);
    let server = listener.name.as_deref().unwrap_or(&to[..path]);
    [("listener", &listener.listen), ("server", server)]
}

/// A page that is being written. Each name is written with the program's before it.
#[derive(Default)]
struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str) {
        self.head(name, "gauge", help);
    }

    fn counter(&mut self, name: &str, help: &str) {
        self.head(name, "counter", help);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "# HELP agent_trace_{name} {help}");
        let _ = writeln!(self.0, "# TYPE agent_trace_{name} {kind}");
    }

    fn value(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "agent_trace_{name} {value}");
    }

    fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
            .collect();
        let _ = writeln!(self.0, "agent_trace_{name}{{{}}} {value}", labels.join(","));
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut total = 0;
        for (at, count) in histogram.buckets.iter().enumerate() {
            total += count.load(Ordering::Relaxed);
            let bound = BUCKETS_US.get(at).copied();
            let bound = bound.map_or("+Inf".into(), |us| seconds(us * 1_000));
            self.labelled(&bucket, &[("le", &bound)], total);
        }
        let sum = histogram.sum_ns.load(Ordering::Relaxed);
        self.value(&format!("{name}_sum"), seconds(sum));
        self.value(&format!("{name}_count"), total);
    }
}

/// Seconds with as many digits as there are.
fn seconds(nanoseconds: u64) -> String {
    let (whole, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A label's value as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn buckets_are_cumulative_and_labels_escaped() {
        let relayed = HttpStats::default();
        for us in [9, 10, 11, 600, 20_000_000] {
            relayed.latency.record(Duration::from_micros(us));
        }
        let recorded = Stats {
            frames: [3, 4, 0],
            ..Stats::default()
        };
        let listeners = [Some("a \"b\"\\\n"), None].map(|name| Relayed {
            name: name.map(str::to_owned),
            listen: "127.0.0.1:1".into(),
            to: "https://x:2/secret".into(),
            ..Relayed::default()
        });
        let text = text(&Counted {
            started: 7,
            relayed: &relayed,
            recorded: &recorded,
            recording: true,
            listeners: &listeners,
        });
        for line in [
            "agent_trace_relay_latency_seconds_bucket{le=\"0.00001\"} 2",
            "agent_trace_relay_latency_seconds_bucket{le=\"0.000025\"} 3",
            "agent_trace_relay_latency_seconds_bucket{le=\"0.0005\"} 3",
            "agent_trace_relay_latency_seconds_bucket{le=\"0.001\"} 4",
            "agent_trace_relay_latency_seconds_bucket{le=\"10\"} 4",
            "agent_trace_relay_latency_seconds_bucket{le=\"+Inf\"} 5",
            "agent_trace_relay_latency_seconds_sum 20.00063",
            "agent_trace_relay_latency_seconds_count 5",
            "agent_trace_frames_total{to=\"server\"} 3",
            "agent_trace_frames_total{to=\"client\"} 4",
            "agent_trace_recording 1",
            "agent_trace_start_time_seconds 7",
            r#"agent_trace_listener_up{listener="127.0.0.1:1",server="a \"b\"\\\n"} 1"#,
            r#"agent_trace_listener_up{listener="127.0.0.1:1",server="https://x:2"} 1"#,
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
