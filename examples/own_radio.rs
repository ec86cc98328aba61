//! Three OBUs and an RSU on a radio of one's own: who is within 100 m hears 99 of 100 frames. The
//! vehicles stand 90 m apart in a row, so that the last is three hops away.
//!
//! `cargo run -p sim --example own_radio`

use std::time::Duration;

use node_lib::{Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::{Location, Reach, Role, World};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut world = World::new(7);
    let hears = |a: Location, b: Location| if a.distance_m(b) <= 100.0 { 0.99 } else { 0.0 };
    world.set_medium(Box::new(Reach::new(world.seed(), Duration::from_millis(1), hears)));
    let mac = |n| Mac([2, 0, 0, 0, 0, n]);
    let rsu = world.add(Role::Rsu, mac(0), |start, now| {
        Rsu::new(rsu_lib::Settings::default().config(start), now)
    });
    world.place(rsu, Location::new(0.0, 0.0));
    for n in 1..=3 {
        let obu = world.add(Role::Obu, mac(n), |start, now| {
            Obu::new(obu_lib::Settings::default().config(start), now)
        });
        world.place(obu, Location::new(90.0 * f64::from(n), 0.0));
    }
    world.run_until(Timestamp::from_millis(5000))?;
    for obu in world.nodes(Role::Obu) {
        let way = world.attachment(obu).ok_or("it should have found the RSU")?;
        println!("{obu:?} reaches {} in {} hops", way.rsu, way.hops);
    }
    Ok(())
}

#[cfg(test)]
#[test]
fn it_works() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
