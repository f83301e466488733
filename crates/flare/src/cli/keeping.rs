//! In: the words after `flare backup`, `restore`, `doctor` and `key`. Out: [`Keeping`].

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConfigArgs, StoreArgs};

/// A command about what is stored and the key that seals it.
#[derive(Debug, Subcommand)]
pub enum Keeping {
    /// Copy a store into a file, as it is at one moment, whether a node runs on it or not.
    Backup(BackupArgs),
    /// Put a backup into a directory that is empty or not there. Clients are then told everything anew, by themselves.
    Restore(RestoreArgs),
    /// Check a store from end to end and say what is wrong with it; exit code 1 when something is.
    Doctor(StoreArgs),
    /// The key that seals secrets and credentials.
    Key {
        /// What to do with it.
        #[command(subcommand)]
        action: Key,
    },
}

/// `flare key ...`.
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Seal everything anew under another key, while no node runs on the store; safe to repeat.
    Rotate(RotateArgs),
}

/// What `flare backup` may be told.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// The file, which must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// A file with the key that encrypts the backup: the base64 of 32 bytes, as `openssl rand -base64 32` writes it.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Leave out the key that seals secrets and credentials: the backup is of no use without it.
    #[arg(long)]
    pub without_key: bool,
    /// Where the configuration and the data are.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What `flare restore` may be told.
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    /// The backup.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// The directory of the data, which must be empty or not there.
    #[arg(long, value_name = "PATH")]
    pub data: String,
    /// A file with the key that the backup was encrypted with.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// What `flare key rotate` may be told.
#[derive(Debug, Clone, Args)]
pub struct RotateArgs {
    /// Where auth.secret-key has the new key: a file with the former one.
    #[arg(long, value_name = "FILE")]
    pub former_file: Option<PathBuf>,
    /// Where the configuration and the data are.
    #[command(flatten)]
    pub store: StoreArgs,
}

impl RestoreArgs {
    /// The same as other commands take it.
    pub fn store(&self) -> StoreArgs {
        StoreArgs { config: self.config.clone(), data: Some(self.data.clone()) }
    }
}
