import CRUDTestSupport
import Glibc
import Testing

/// The socket's place, its rights, and who may have it.
@Suite struct SocketTests {
    @Test func theSocketGoesWithTheDaemonAndTheLockStays() throws {
        let daemon = try Daemon()
        #expect(Files.status(daemon.socketPath).map { $0.st_mode & S_IFMT } == S_IFSOCK)
        #expect(try daemon.stop() == .exited(0))
        #expect(!Files.exists(daemon.socketPath))
        #expect(Files.exists("\(daemon.socketPath).lock"))
        #expect(try daemon.restarted().connect().isUsable())
    }

    @Test func aSecondDaemonIsRefusedAndTheFirstGoesOn() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        let second = try daemon.installation.startInVain()
        #expect(second.status != .exited(0))
        #expect(second.errors.contains(daemon.socketPath))
        #expect(try connection.item("c", "a") == "1")
        #expect(try daemon.connect().item("c", "a") == "1")
    }

    @Test func aStaleSocketIsReplaced() throws {
        let daemon = try Daemon()
        try daemon.kill()
        #expect(Files.exists(daemon.socketPath))
        #expect(try daemon.restarted().connect().isUsable())
    }

    @Test func aPlaceThatHoldsSomethingElseIsRefused() throws {
        let installation = try Installation()
        try Files.write("precious", to: installation.socketPath)
        try expectRefusal(installation)
        #expect(try Files.read(installation.socketPath) == Array("precious".utf8))
        Files.remove(installation.socketPath)

        try Files.makeDirectory(installation.socketPath)
        try expectRefusal(installation)
        #expect(Files.exists(installation.socketPath))
        Files.remove(installation.socketPath)

        try Files.write("precious", to: "\(installation.path)/target")
        #expect(symlink("\(installation.path)/target", installation.socketPath) == 0)
        try expectRefusal(installation)
        #expect(try Files.read("\(installation.path)/target") == Array("precious".utf8))
    }

    @Test func aDirectoryThatOthersMayWriteIsRefusedUnlessSticky() throws {
        let installation = try Installation()
        let text = String(decoding: try Files.read(installation.configurationFile), as: UTF8.self)
        let place = "\(installation.path)/open"
        try Files.makeDirectory(place, mode: 0o777)
        try installation.configure(
            text: text.split(separator: "\n", omittingEmptySubsequences: false)
                .map { $0.contains("path: \(installation.socketPath)") ? "  path: \(place)/crudd.sock" : String($0) }
                .joined(separator: "\n"))
        try expectRefusal(installation)
        try Files.setMode(0o1777, of: place)
        let daemon = try Daemon(on: installation)
        #expect(try Connection(to: "\(place)/crudd.sock").isUsable())
        #expect(try daemon.stop() == .exited(0))
        try Files.setMode(0o755, of: place)
        let another = try Daemon(on: installation)
        #expect(try Connection(to: "\(place)/crudd.sock").isUsable())
        #expect(try another.stop() == .exited(0))
        // Its owner can replace what is there whatever its mode is.
        for mode in [0o755, 0o1777] where Peer.canImpersonate {
            #expect(chown(place, 65534, 65534) == 0)
            try Files.setMode(mode_t(mode), of: place)
            try expectRefusal(installation)
        }
    }

    @Test(arguments: [("", 0o660), (#"mode: "0600""#, 0o600), (#"mode: "0666""#, 0o666), (#"mode: "0620""#, 0o620)])
    func theModeIsAsConfigured(socket: String, mode: Int) throws {
        let daemon = try Daemon(Configuration(socket: socket))
        #expect(Files.status(daemon.socketPath).map { Int($0.st_mode & 0o7777) } == mode)
    }

    @Test func theGroupIsAsConfigured() throws {
        // Root may give the socket to any group, others to their own.
        let wanted = Peer.canImpersonate ? gid_t(65534) : getegid()
        let name = String(cString: try #require(getgrgid(wanted)).pointee.gr_name)
        let daemon = try Daemon(Configuration(socket: "group: \(name)"))
        #expect(Files.status(daemon.socketPath)?.st_gid == wanted)
    }

    @Test func handedOverByTheServiceManager() throws {
        let installation = try Installation()
        let path = "\(installation.path)/activated.sock"
        let listener = try Descriptor.listener(at: path)
        var daemon = try Daemon(on: installation, listener: listener)
        #expect(try Connection(to: path).create("c", "a", "1").result != nil)
        #expect(!Files.exists(installation.socketPath))
        #expect(try daemon.stop() == .exited(0))
        #expect(Files.exists(path), "the socket belongs to the service manager")

        // Who connects meanwhile is served by the next daemon.
        let early = try Connection(to: path)
        try early.sendFrame(Connection.request("record.read", Connection.params("c", "a"), id: "1"))
        daemon = try daemon.restarted(listener: listener)
        #expect(try early.receive().result?["item"]?.text == "1")
        try daemon.kill()
        daemon = try daemon.restarted(listener: listener)
        #expect(try Connection(to: path).item("c", "a") == "1")
    }

    @Test func descriptorsForAnotherProcessAreNotTaken() throws {
        let installation = try Installation()
        let listener = try Descriptor.listener(at: "\(installation.path)/activated.sock")
        let daemon = try Daemon(on: installation, environment: ["PID": "1"], listener: listener)
        #expect(try daemon.connect().isUsable())
    }

    @Test func whatIsNoListeningSocketIsNotTaken() throws {
        for descriptor in [try Descriptor.streamSocket(), try Descriptor.datagramSocket()] {
            let installation = try Installation()
            let failure = #expect(throws: (any Error).self) { try Daemon(on: installation, listener: descriptor) }
            #expect("\(failure as Any)".contains("not a listening Unix stream socket"))
        }
    }

    private func expectRefusal(_ installation: Installation) throws {
        let outcome = try installation.startInVain()
        #expect(outcome.status != .exited(0))
        #expect(!outcome.errorLines.isEmpty)
    }
}
