//! `evenkeel-control-plane`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use evenkeel_control_plane::{
    assembly::ControlPlane,
    cli::{Cli, Command, ServeFlags, Settings, backup, token},
    log,
};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("evenkeel")
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error.as_ref()),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("evenkeel-control-plane: {error}");
    ExitCode::FAILURE
}

async fn run(cli: Cli) -> Outcome {
    match cli.command {
        None => serve(cli.serve).await,
        Some(Command::Serve(flags)) => serve(*flags).await,
        Some(Command::Token(command)) => {
            println!("{}", token::run(&command).await?);
            Ok(())
        }
        Some(Command::Backup(flags)) => {
            println!("{}", backup::backup(&flags).await?);
            Ok(())
        }
        Some(Command::Restore(flags)) => {
            println!("{}", backup::restore(&flags)?);
            Ok(())
        }
        Some(Command::Version) => {
            println!("{}", Cli::command().render_version().trim_end());
            Ok(())
        }
    }
}

async fn serve(flags: ServeFlags) -> Outcome {
    let settings = Settings::resolve(flags)?;
    log::init(&settings)?;
    // Before anything is opened, so that an order to stop is never missed.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let order = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        }
    };
    let control_plane = ControlPlane::start(settings).await?;
    tracing::info!(
        address = %control_plane.address(),
        url = control_plane.url(),
        kubeconfig = %control_plane.kubeconfig().display(),
        "serving"
    );
    control_plane.run_until(order).await?;
    tracing::info!("stopped");
    Ok(())
}
