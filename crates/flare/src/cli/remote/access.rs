//! In: `flare token ...` and `flare account ...`. Out: what a running node says to them.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::{Exit, Format, Output, encoded, text};

/// Entries asked for at once.
const PAGE: usize = 100;

/// `flare token ...`.
#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// Create a token and print it, this once.
    Create(TokenArgs),
    /// List the tokens of the account, without the tokens themselves.
    List,
    /// Revoke a token: it is refused from then on.
    Revoke {
        /// The id of the token, such as tok_9w3kq0v7d1m5c2xj4f8t.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// A token to create.
#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    /// What it is called.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What it is good for: read, origin, subscribe, admin; several with commas between them.
    #[arg(long, alias = "scope", value_name = "SCOPES", value_delimiter = ',', required = true)]
    pub scopes: Vec<String>,
    /// How long it is good, such as 2160h; without it, until it is revoked.
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<String>,
    /// Only for these resources.
    #[arg(long, alias = "resource", value_name = "IDS", value_delimiter = ',')]
    pub resources: Vec<String>,
    /// Only for these subscriptions.
    #[arg(long, alias = "subscription", value_name = "IDS", value_delimiter = ',')]
    pub subscriptions: Vec<String>,
}

/// `flare account ...`.
#[derive(Debug, Subcommand)]
pub enum Accounts {
    /// Create an account.
    Create(AccountArgs),
    /// List accounts, with what they have and may have.
    List,
    /// Delete an account that has no resources; its tokens go with it.
    Delete {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// An account to create; what is left out has no bound.
#[derive(Debug, Clone, Args)]
pub struct AccountArgs {
    /// Its name: small letters, digits and dashes.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How many resources it may have.
    #[arg(long, value_name = "NUMBER")]
    pub resources: Option<u32>,
    /// How many subscriptions.
    #[arg(long, value_name = "NUMBER")]
    pub subscriptions: Option<u32>,
    /// How many documents.
    #[arg(long, value_name = "NUMBER")]
    pub documents: Option<u32>,
    /// How many documents its origins may send each second.
    #[arg(long, value_name = "NUMBER")]
    pub changes_per_second: Option<u32>,
}

/// Does something with tokens.
pub async fn tokens(client: &mut Client, action: &Tokens, out: &mut Output) -> anyhow::Result<Exit> {
    match action {
        Tokens::Create(args) => {
            let mut draft = json!({"name": args.name, "scopes": args.scopes});
            for (field, ids) in [("resources", &args.resources), ("subscriptions", &args.subscriptions)] {
                if !ids.is_empty() {
                    draft[field] = json!(ids);
                }
            }
            if let Some(ttl) = &args.ttl {
                draft["ttl"] = json!(ttl);
            }
            let created = client.post("/tokens", &draft).await?;
            match out.format {
                Format::Json => out.json(&created)?,
                // Alone on standard output, so that it can be kept by a script.
                Format::Human => {
                    eprintln!("token {} is good from now on; it is shown this once:", text(&created, "id"));
                    out.line(text(&created, "token"))?;
                }
            }
        }
        Tokens::List => {
            let all = all(client, "tokens").await?;
            let row = |token: &Value| {
                let scopes: Vec<&str> =
                    token["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let when = |name: &str| token[name].as_str().unwrap_or("never").to_owned();
                [
                    text(token, "id").to_owned(),
                    text(token, "name").to_owned(),
                    scopes.join(","),
                    when("expiresAt"),
                    when("lastUsedAt"),
                ]
            };
            let rows: Vec<_> = all.iter().map(row).collect();
            table(out, ["ID", "NAME", "SCOPES", "EXPIRES", "LAST USED"], rows, &json!({"tokens": all}))?;
        }
        Tokens::Revoke { id } => {
            delete(client, &format!("/tokens/{}", encoded(id))).await?;
            said(out, &format!("token {id} is refused from now on"), &json!({"revoked": id}))?;
        }
    }
    Ok(Exit::Done)
}

/// Does something with accounts.
pub async fn accounts(client: &mut Client, action: &Accounts, out: &mut Output) -> anyhow::Result<Exit> {
    match action {
        Accounts::Create(args) => {
            let bounds = [
                ("resources", args.resources),
                ("subscriptions", args.subscriptions),
                ("documents", args.documents),
                ("changesPerSecond", args.changes_per_second),
            ];
            let given = bounds.into_iter().filter_map(|(name, most)| Some((name.to_owned(), json!(most?))));
            let quotas: Map<String, Value> = given.collect();
            let created = client.post("/accounts", &json!({"name": args.name, "quotas": quotas})).await?;
            said(out, &format!("there is an account {}", args.name), &created)?;
        }
        Accounts::List => {
            let all = all(client, "accounts").await?;
            let row = |account: &Value| {
                let of = |name: &str| match account["quotas"][name].as_u64() {
                    Some(most) => format!("{}/{most}", account["usage"][name]),
                    None => account["usage"][name].to_string(),
                };
                let rate = account["quotas"]["changesPerSecond"].as_u64();
                [
                    text(account, "name").to_owned(),
                    of("resources"),
                    of("subscriptions"),
                    of("documents"),
                    rate.map_or_else(|| "any".to_owned(), |rate| rate.to_string()),
                ]
            };
            let rows: Vec<_> = all.iter().map(row).collect();
            let head = ["NAME", "RESOURCES", "SUBSCRIPTIONS", "DOCUMENTS", "CHANGES/S"];
            table(out, head, rows, &json!({"accounts": all}))?;
        }
        Accounts::Delete { name } => {
            delete(client, &format!("/accounts/{}", encoded(name))).await?;
            said(out, &format!("account {name} is gone"), &json!({"deleted": name}))?;
        }
    }
    Ok(Exit::Done)
}

/// All entries of a list.
async fn all(client: &mut Client, plural: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    loop {
        let page = client.get(&format!("/{plural}?limit={PAGE}&offset={}", all.len())).await?;
        let entries = page[plural].as_array().context("the answer has no list: is this a Flare?")?;
        if entries.is_empty() {
            return Ok(all);
        }
        all.extend(entries.iter().cloned());
    }
}

async fn delete(client: &mut Client, path: &str) -> anyhow::Result<()> {
    let answer = client.ask(&Method::DELETE, path, None).await?;
    match answer.status.is_success() {
        true => Ok(()),
        false => Err(super::client::refused(&Method::DELETE, path, answer.status, &answer.body)),
    }
}

fn said(out: &mut Output, words: &str, value: &Value) -> anyhow::Result<()> {
    match out.format {
        Format::Json => out.json(value),
        Format::Human => out.line(words),
    }
}

fn table(out: &mut Output, head: [&str; 5], rows: Vec<[String; 5]>, value: &Value) -> anyhow::Result<()> {
    if out.format == Format::Json {
        return out.json(value);
    }
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows);
    let widths: [usize; 5] =
        std::array::from_fn(|column| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    for row in &all {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  "));
        out.line(cells.collect::<String>().trim_end())?;
    }
    Ok(())
}
