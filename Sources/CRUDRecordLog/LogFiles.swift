package import CRUDPluginKit

/// The directory in which a log has its segments: those of the system (``LogDirectory``), or those of a test, which
/// fail and crash when they are told to.
package protocol LogFiles: AnyObject {
    /// For messages.
    var path: String { get }

    /// Every name, in no order.
    func names() throws(StorageFailure) -> [String]

    /// Opens a file for reading and writing.
    ///
    /// - Parameters:
    ///   - name: of the file.
    ///   - isNew: whether it is made; there must be none then.
    func open(_ name: String, isNew: Bool) throws(StorageFailure) -> any LogFile

    func remove(_ name: String) throws(StorageFailure)

    /// Returns once the disk has every name.
    func sync() throws(StorageFailure)
}

/// An open file of a log.
package protocol LogFile: AnyObject {
    func size() throws(StorageFailure) -> Int

    /// Reads what is there, and returns how many bytes that were.
    func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageFailure) -> Int

    /// Writes all bytes. If that fails, any of them may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StorageFailure)

    /// Returns once the disk has all that was written.
    func sync() throws(StorageFailure)
}
