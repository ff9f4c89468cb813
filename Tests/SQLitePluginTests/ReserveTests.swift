import CRUDTestSupport
import Glibc
import Testing

/// The room that is kept for deletions. ``FullDiskTests`` fill a disk.
@Suite struct ReserveTests {
    /// As long as there is no room for it, the file is not made and removed again with each attempt.
    @Test func isNotMadeInVain() throws {
        let directory = try TemporaryDirectory()
        let store = try Store(
            .sqlite, options: #"{"path": "\#(directory.path)/main.sqlite", "reserve": "1048576GiB"}"#)
        #expect(store.logLines.contains { $0.contains("there is no room for") })
        #expect(!Files.exists("\(directory.path)/main.sqlite-reserve"))
        let times = [timespec(), timespec()]
        #expect(utimensat(AT_FDCWD, directory.path, times, 0) == 0)
        store.idle()
        #expect(Files.status(directory.path)?.st_mtim.tv_sec == 0, "a file has come or gone")
    }
}
