import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// What the plugin says of options and of places to open.
@Suite struct OpeningTests {
    private let directory: RecordDirectory
    private let plugin: ExportedPlugin

    init() throws {
        directory = try RecordDirectory()
        plugin = try ExportedPlugin("filesystem")
    }

    private func errorOfOpening(_ path: String) -> CallError? {
        do {
            _ = try PluginBackend(plugin, options: #"{"directory": "\#(path)"}"#)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("{}", "/directory"), (#"{"directory": "files"}"#, "/directory"), (#"{"directory": ""}"#, "/directory"),
        (#"{"directory": 1}"#, "/directory"), (#"{"directory": "/a\u0000b"}"#, "/directory"),
        (#"{"directory": "/a", "fsync": "yes"}"#, "/fsync"), (#"{"directory": "/a", "fsnc": true}"#, "/fsnc"),
    ])
    func pointsToErrors(options: String, pointer: String) throws {
        let error = try #require(plugin.error(inOptions: options))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == pointer)
    }

    @Test func checksOptionsWithoutTouchingStorage() {
        #expect(plugin.error(inOptions: #"{"directory": "\#(directory.path)", "fsync": false}"#) == nil)
        #expect(!Files.exists(directory.path))
    }

    @Test func makesTheDirectoryForItsOwnerAlone() throws {
        let backend = try directory.open()
        _ = try backend.write([.put("id", "1", in: backend.open("clients"))])
        #expect(Files.status(directory.path)?.st_mode == S_IFDIR | 0o700)
        #expect(Files.status("\(directory.path)/clients")?.st_mode == S_IFDIR | 0o700)
        #expect(Files.status("\(directory.path)/clients/item_id.json")?.st_mode == S_IFREG | 0o600)
    }

    @Test func opensRecordsToTheGroupOfTheDirectory() throws {
        try Files.makeDirectory(directory.path, mode: 0o755)
        let backend = try directory.open()
        _ = try backend.write([.put("id", "1", in: backend.open("clients"))])
        #expect(Files.status("\(directory.path)/clients")?.st_mode == S_IFDIR | 0o750)
        #expect(Files.status("\(directory.path)/clients/item_id.json")?.st_mode == S_IFREG | 0o640)
    }

    /// What is new in a directory that is setgid has its group, also where the process is no member of it.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to give a directory another group"))
    func givesRecordsTheGroupOfASetgidDirectory() throws {
        let group: gid_t = 65534
        try Files.makeDirectory(directory.path)
        #expect(chown(directory.path, getuid(), group) == 0 && chmod(directory.path, 0o2770) == 0)
        let backend = try directory.open()
        let clients = try backend.open("clients")
        _ = try backend.write([.put("id", "1", in: clients)])
        // It is replaced, too.
        _ = try backend.write([.put("id", "2", in: clients), .put("other", "3", in: clients)])
        let modes: [(file: String, mode: mode_t)] = [
            ("", 0o770), ("/item_id.json", 0o660), ("/item_other.json", 0o660),
        ]
        for (file, mode) in modes {
            let status = try #require(Files.status("\(directory.path)/clients\(file)"))
            #expect(status.st_gid == group && status.st_mode & 0o777 == mode, "\(file)")
        }
        #expect(try directory.read("clients/item_id.json") == "2")
        #expect(try directory.names(in: "clients") == ["item_id.json", "item_other.json"])
        #expect(try directory.names().allSatisfy { !$0.contains("temporary") })
    }

    @Test func keepsASecondOpenerOut() throws {
        let backend = try directory.open()
        let second = try #require(errorOfOpening(directory.path))
        #expect(second.status == CRUDD_UNAVAILABLE)
        #expect(second.message.contains(".lock"))
        withExtendedLifetime(backend) {}
    }

    @Test func opensAgainOnceClosed() throws {
        do { _ = try directory.open() }
        #expect(errorOfOpening(directory.path) == nil)
    }

    /// A process that is being started shares the descriptor of the lock until it executes its program.
    @Test func opensAgainOnceClosedBesideAProcessThatStarts() throws {
        let shared: Descriptor
        do {
            let backend = try directory.open()
            let file = try #require(Files.status("\(directory.path)/.lock"))
            let lock = try #require(
                Files.names(in: "/proc/self/fd").compactMap { Int32($0) }.first { number in
                    var status = stat()
                    return fstat(number, &status) == 0 && status.st_ino == file.st_ino && status.st_dev == file.st_dev
                })
            shared = Descriptor(owning: fcntl(lock, F_DUPFD_CLOEXEC, 0))
            withExtendedLifetime(backend) {}
        }
        #expect(errorOfOpening(directory.path) == nil)
        withExtendedLifetime(shared) {}
    }

    @Test func refusesAFile() throws {
        try Files.write("", to: directory.path)
        let error = try #require(errorOfOpening(directory.path))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == "/directory")
    }

    @Test func refusesAPlaceWithoutParent() throws {
        let error = try #require(errorOfOpening("\(directory.path)/none/files"))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
    }

    /// /proc has no attributes of users.
    @Test func refusesAFileSystemWithoutAttributes() throws {
        let error = try #require(errorOfOpening("/proc"))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == "/directory")
        #expect(error.message.contains("extended attributes"))
    }

    @Test func refusesALockThatIsALink() throws {
        try Files.makeDirectory(directory.path)
        let target = "\(directory.path)/target"
        guard symlink(target, "\(directory.path)/.lock") == 0 else { throw Failure.system("symlink") }
        #expect(errorOfOpening(directory.path)?.status == CRUDD_UNAVAILABLE)
        #expect(!Files.exists(target))
    }

    @Test func removesWhatACrashHasLeft() throws {
        let name = ".crudd-temporary-1f"
        do {
            let backend = try directory.open()
            for collection in ["clients", "orders"] {
                _ = try backend.write([.put("id", "1", in: backend.open(collection))])
                try directory.write("half", to: "\(collection)/\(name)")
            }
        }
        let backend = try directory.open()
        #expect(try directory.names(in: "clients") == ["item_id.json"])
        #expect(try directory.names(in: "orders") == ["item_id.json"])
        #expect(backend.logged == [])
    }
}
