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
