//! A network of our own: a namespace for each node, one for the store and one for the coordinator, all joined by a hub, in which
//! clients and origin are. What goes from one to another passes the hub, where a rule drops it, one way or both.
//!
//! Names begin with a prefix and the process that made them. Whatever is left of a run that was killed is removed by the next.

use std::collections::HashSet;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

const PREFIX: &str = "flarecl";

/// A place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Clients and origin.
    Hub,
    Store,
    /// Where a second server of the store follows the first.
    Standby,
    Coordinator,
    /// A node, from 0.
    Node(usize),
}

impl Place {
    fn number(self) -> usize {
        match self {
            Place::Hub => 0,
            Place::Store => 1,
            Place::Standby => 2,
            Place::Coordinator => 3,
            Place::Node(number) => 10 + number,
        }
    }

    /// Where it is reached.
    pub fn address(self) -> String {
        match self {
            Place::Hub => "10.90.0.1".to_owned(),
            _ => format!("10.90.{}.2", self.number()),
        }
    }

    fn gateway(self) -> String {
        format!("10.90.{}.1", self.number())
    }
}

/// The network of one run.
#[derive(Clone)]
pub struct Network {
    /// The process that made it.
    run: u32,
    places: Vec<Place>,
}

impl Network {
    /// One with so many nodes.
    pub fn of(run: u32, nodes: usize) -> Network {
        let servers = [Place::Hub, Place::Store, Place::Standby, Place::Coordinator];
        let places = servers.into_iter().chain((0..nodes).map(Place::Node)).collect();
        Network { run, places }
    }

    /// The name of a namespace.
    pub fn namespace(&self, place: Place) -> String {
        format!("{PREFIX}-{}-{}", self.run, place.number())
    }

    /// Makes it.
    pub fn build(&self) -> anyhow::Result<()> {
        remove_leftovers();
        for place in &self.places {
            let (name, hub) = (self.namespace(*place), self.namespace(Place::Hub));
            ip(&["netns", "add", &name]).context("network namespaces need root")?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
            if *place == Place::Hub {
                ip(&["-n", &name, "address", "add", "10.90.0.1/32", "dev", "lo"])?;
                run("ip", &["netns", "exec", &name, "sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
                continue;
            }
            let link = format!("v{}", place.number());
            let (here, there) = (format!("{}/24", place.gateway()), format!("{}/24", place.address()));
            ip(&["-n", &hub, "link", "add", &link, "type", "veth", "peer", "name", "up0", "netns", &name])?;
            ip(&["-n", &hub, "address", "add", &here, "dev", &link])?;
            ip(&["-n", &hub, "link", "set", &link, "up"])?;
            ip(&["-n", &name, "address", "add", &there, "dev", "up0"])?;
            ip(&["-n", &name, "link", "set", "up0", "up"])?;
            ip(&["-n", &name, "route", "add", "default", "via", &place.gateway()])?;
        }
        Ok(())
    }

    /// Ends what still runs in it, and removes it.
    pub fn remove(&self) {
        for place in &self.places {
            remove(&self.namespace(*place));
        }
    }

    /// A program in a namespace, which ends with this process.
    pub fn command(&self, place: Place, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(place), "setpriv", "--pdeathsig", "KILL"]);
        command.arg(program).stdin(Stdio::null());
        command
    }

    /// Drops what one sends to another, from now on.
    pub fn cut(&self, from: Place, to: Place) -> anyhow::Result<()> {
        self.rule("add", from, to)
    }

    /// Both ways.
    pub fn part(&self, one: Place, other: Place) -> anyhow::Result<()> {
        self.cut(one, other)?;
        self.cut(other, one)
    }

    /// Nothing is dropped any more.
    pub fn heal(&self) -> anyhow::Result<()> {
        let hub = self.namespace(Place::Hub);
        let rules = Command::new("ip").args(["-n", &hub, "rule", "show"]).output()?;
        let dropping = String::from_utf8_lossy(&rules.stdout).matches("blackhole").count();
        for _ in 0..dropping {
            ip(&["-n", &hub, "rule", "del", "blackhole"])?;
        }
        Ok(())
    }

    /// From now on the address of the store is that of its second server.
    pub fn move_store(&self) -> anyhow::Result<()> {
        let (hub, standby) = (self.namespace(Place::Hub), self.namespace(Place::Standby));
        let moved = format!("{}/32", Place::Store.address());
        ip(&["-n", &standby, "address", "add", &moved, "dev", "up0"])?;
        ip(&["-n", &hub, "route", "replace", &moved, "via", &Place::Standby.address()])
    }

    fn rule(&self, what: &str, from: Place, to: Place) -> anyhow::Result<()> {
        let hub = self.namespace(Place::Hub);
        let (from, to) = (from.address(), to.address());
        ip(&["-n", &hub, "rule", what, "from", &from, "to", &to, "blackhole"])
    }
}

/// Whether this process may make namespaces.
pub fn is_permitted() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Removes namespaces whose makers are gone.
fn remove_leftovers() {
    let Ok(listed) = Command::new("ip").args(["netns", "list"]).output() else { return };
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: HashSet<&str> = names.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for name in names {
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').nth(1));
        let lives = |maker: &str| std::path::Path::new(&format!("/proc/{maker}")).exists();
        if maker.is_some_and(|maker| !lives(maker)) {
            remove(name);
        }
    }
}

fn remove(name: &str) {
    // Only what was started in it is in it.
    let inside = Command::new("ip").args(["netns", "pids", name]).output();
    let inside = inside.map(|pids| String::from_utf8_lossy(&pids.stdout).into_owned()).unwrap_or_default();
    for pid in inside.split_whitespace().filter(|pid| *pid != std::process::id().to_string()) {
        let _gone_already = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let _was_never_made = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    run("ip", arguments)
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
