import ArgumentParser
import CRUDJSON
import CRUDWire
import Glibc

struct Backup: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a copy of a backend's storage, as of one moment, while it serves.",
        discussion: """
            The daemon writes the file, and calls it BACKEND-DATETTIMEZ.PLUGIN; only its own user may read it. \
            DIRECTORY must exist, without symbolic links on the way, and nobody but root and the daemon's user may \
            write to it. The command waits until the disk has all of it; where it is interrupted, the daemon removes \
            what it has written. Backends that cannot do it say what to use instead.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The backend's name.", completion: .backends) var backend: String
    @Argument(help: "Where the daemon writes the copy.", completion: .directory) var directory: String

    /// As long as it takes, unless there is `--timeout`.
    private static let longestCall = Duration.seconds(30 * 86_400)

    func run() async throws {
        var params = JSONWriter()
        params.object { params in
            params.member("backend", backend)
            params.member("directory", absoluteDirectory)
        }
        let json = params.bytes
        let waiting = options.timeout == nil ? Self.longestCall : .zero
        let result = try await withClient { client in
            // It is cancelled when the call returns.
            async let _ = BackupFollowing.run(backend, client)
            return try await client.call("backend.backup", json: json, waiting: waiting)
        }
        try show(result, notations: ["bytes": .bytes, "at": .instant])
    }

    private var absoluteDirectory: String {
        if directory.utf8.first == UInt8(ascii: "/") { return directory }
        guard let current = getcwd(nil, 0) else { return directory }
        defer { free(current) }
        return String(cString: current) + "/" + directory
    }
}

/// Shows how far a backup is, on a terminal.
private enum BackupFollowing {
    /// Time between two calls.
    private static let microseconds: UInt32 = 200_000

    /// Asks the daemon again and again until the task is cancelled.
    static func run(_ backend: String, _ client: Client) async {
        guard let display = ProgressDisplay.onTerminal() else { return }
        defer { display.end() }
        while !Task.isCancelled {
            // Task.sleep would start threads of libdispatch. The reply to the backup waits as long.
            usleep(microseconds)
            guard let reply = try? await client.call("backend.list", json: Array("{}".utf8)) else { return }
            let backends = (ResultObject(reply)?.elements("backends") ?? []).compactMap { ResultObject(Array($0)) }
            guard let backup = backends.first(where: { $0.string("name") == backend })?.value("backup"),
                let status = ResultObject(Array(backup)), let bytes = status.integer("bytes")
            else { continue }
            display.show([ProgressLine(name: backend, phase: "copying", bytes: bytes, of: status.integer("totalBytes"))]
            )
        }
    }
}
