//! Plans: what an engine needs and lacks, or has and needs no more, as changes that people read before they happen. Engines make
//! them; the command line shows and asks.

/// What would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is missing, and made.
    Create,
    /// It is there, and changed.
    Update,
    /// It is there and belongs to nothing, and goes.
    Delete,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What would be done.
    pub action: Action,
    /// What kind of thing it is: `schema`, `table`, `index`, `migration`, `rows`.
    pub kind: &'static str,
    /// Its name, as its engine knows it.
    pub name: String,
    /// Why, or what it is about.
    pub detail: String,
}

/// Something that a migration makes, with the statement that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object<'s> {
    /// `table` or `index`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'s str,
    /// The statement.
    pub sql: &'s str,
}

/// The tables and indexes that the statements of a migration create, in order. Statements end with a semicolon at the end of a
/// line, and comments are lines of their own.
pub fn objects(sql: &str) -> Vec<Object<'_>> {
    sql.split(";\n").filter_map(|statement| object(statement.trim_end_matches([';', '\n']))).collect()
}

fn object(statement: &str) -> Option<Object<'_>> {
    let begin = statement.lines().find(|line| !line.is_empty() && !line.starts_with("--"))?;
    let sql = &statement[begin.as_ptr() as usize - statement.as_ptr() as usize..];
    let mut words = sql.split_whitespace();
    let create = words.next()?;
    let kind = words.next().filter(|_| create == "CREATE")?;
    let kind = if kind == "UNIQUE" { words.next()? } else { kind };
    let kind = match kind {
        "TABLE" => "table",
        "INDEX" => "index",
        _ => return None,
    };
    Some(Object { kind, name: words.next()?, sql })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_migration_makes_is_read_from_its_statements() {
        let sql = "-- Why.\nCREATE TABLE one (\n    a text\n);\n\n-- More.\nCREATE UNIQUE INDEX two ON one (a);\n\
                   ALTER TABLE one ADD b text;\nINSERT INTO one VALUES ('CREATE TABLE x');\nCREATE INDEX three ON one (b);\n";
        let found: Vec<_> = objects(sql).into_iter().map(|object| (object.kind, object.name)).collect();
        assert_eq!(found, [("table", "one"), ("index", "two"), ("index", "three")]);
        assert_eq!(objects(sql)[1].sql, "CREATE UNIQUE INDEX two ON one (a)");
    }
}
