//! What only this engine has: folders, migrations, full disks, damaged rows, tidying up.

mod audit;
mod common;
mod migrations;
mod tidying;
mod trouble;
