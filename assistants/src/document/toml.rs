//! TOML, by the parser that also reads our own configuration.

use super::{Budget, Fault, Member, Node, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::new(at, error.message().trim_end().replace('\n', ", "))
    })?;
    let span = table.span();
    let mut budget = Budget::default();
    let value = map(table.get_ref(), &mut budget, 0)?;
    Ok(Node { span, value })
}

fn map(table: &DeTable<'_>, budget: &mut Budget, depth: usize) -> Result<Value, Fault> {
    let members = table.iter().map(|(key, value)| {
        Ok(Member {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            value: node(value, budget, depth + 1)?,
        })
    });
    Ok(Value::Map(members.collect::<Result<_, _>>()?))
}

fn node(from: &Spanned<DeValue<'_>>, budget: &mut Budget, depth: usize) -> Result<Node, Fault> {
    let span = from.span();
    budget.take(span.start, depth)?;
    let value = match from.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(is) => Value::Bool(*is),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| node(item, budget, depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => map(table, budget, depth)?,
        _ => Value::Other,
    };
    Ok(Node { span, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_table_is_read_and_places_are_exact() {
        let text = "\u{feff}model = 'x'\r\n[mcp_servers.\"a b\"] # one\r\ncommand = \"n\\u0070x\"\r\n\
                    args = [ # two\r\n\t'-y', \"é\",\r\n]\r\n[mcp_servers]\r\nc = { command = \"d\" }\r\n\
                    d.command = '''e'''\r\n";
        let root = read(text).unwrap();
        let servers = root.get("mcp_servers").unwrap();
        let entry = servers.get("a b").unwrap();
        let command = entry.get("command").unwrap();
        assert_eq!(command.text(), Some("npx"));
        assert_eq!(&text[command.span.clone()], "\"n\\u0070x\"");
        let args = entry.get("args").unwrap();
        assert_eq!(&text[args.span.clone()], "[ # two\r\n\t'-y', \"é\",\r\n]");
        assert_eq!(args.texts().unwrap(), ["-y", "é"]);
        assert_eq!(
            &text[servers.get("c").unwrap().span.clone()],
            "{ command = \"d\" }"
        );
        let dotted = servers.get("d").unwrap().member("command").unwrap();
        assert_eq!(&text[dotted.key_span.clone()], "command");
        assert_eq!(&text[dotted.value.span.clone()], "'''e'''");
    }

    #[test]
    fn faults_name_their_place() {
        let fault = read("a = 1\nb = \n").unwrap_err();
        assert!((10..=12).contains(&fault.at), "{fault:?}");
        assert!(read("a = 1\na = 2\n").is_err());
        assert!(read(&format!("a = {}", "[".repeat(10_000))).is_err());
        assert_eq!(read("").unwrap().value, Value::Map(Vec::new()));
    }
}
