import ArgumentParser
import Glibc

/// Measures the start of a daemon, as systemd would see it: from exec to the datagram with READY=1.
struct StartCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Start a daemon, measure the time to READY and its idle memory, stop it.")

    /// How long a daemon is idle before its memory is read.
    private static let idleMicroseconds: useconds_t = 500_000

    @Option(help: "How often.")
    var times = 5
    @Option(help: "Path of the socket for READY=1.")
    var notifySocket: String
    @Option(help: "Name of the target in the results.")
    var target = "crudd"
    @Argument(parsing: .captureForPassthrough, help: "The daemon and its arguments.")
    var command: [String]

    func run() throws {
        let notifications = try ReadyNotifications(at: notifySocket)
        var start = Finding.Start(target: target, readyMilliseconds: [], residentKiB: [])
        for _ in 0..<times {
            let daemon = try MeasuredDaemon(command, notifications)
            start.readyMilliseconds.append(daemon.readyMilliseconds)
            usleep(Self.idleMicroseconds)
            start.residentKiB.append(try daemon.residentKiB)
            try daemon.stop()
        }
        print(try Finding.start(start).line())
        StandardError.print(
            "\(target) ready after \(start.readyMilliseconds.map { $0.text(digits: 1) }) ms, "
                + "resident \(start.residentKiB) KiB")
    }
}
