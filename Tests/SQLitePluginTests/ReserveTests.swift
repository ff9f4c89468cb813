import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// The room that is kept for deletions. ``FullDiskTests`` fill a disk.
@Suite struct ReserveTests {
    /// As long as there is no room for it, the file is not made and removed again with each attempt.
    @Test func isNotMadeInVain() throws {
        let directory = try TemporaryDirectory()
        let backend = try PluginBackend(
            ExportedPlugin("sqlite"), options: #"{"path": "\#(directory.path)/main.sqlite", "reserve": "1048576GiB"}"#)
        #expect(backend.logged.contains { $0.contains("there is no room for") })
        #expect(!Files.exists("\(directory.path)/main.sqlite-reserve"))
        let times = [timespec(), timespec()]
        #expect(utimensat(AT_FDCWD, directory.path, times, 0) == 0)
        backend.idle()
        #expect(Files.status(directory.path)?.st_mtim.tv_sec == 0, "a file has come or gone")
    }
}
