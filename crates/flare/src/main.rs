//! The program; all of it is in the library.

fn main() -> flare::Exit {
    flare::run()
}
