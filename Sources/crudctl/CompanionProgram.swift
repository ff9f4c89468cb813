import CRUDClient
import Glibc

/// A program that is installed together with crudctl, which itself needs neither YAML nor plugins.
struct CompanionProgram {
    let name: String
    /// Its folder, relative to the `bin` in which crudctl is installed.
    let installedFolder: String

    static let daemon = CompanionProgram(name: "crudd", installedFolder: "../sbin")
    static let pluginHost = CompanionProgram(name: "crudd-plugin-host", installedFolder: "../lib/crudd")

    /// Replaces this process (execvp(3)).
    ///
    /// - Throws: ``CRUDError`` with `unavailable` if it cannot be run.
    func execute(_ arguments: [String]) throws -> Never {
        // The copies are never freed: the other program replaces this process.
        let copies = unsafe ([name] + arguments).map { strdup($0) } + [nil]
        let path = path
        unsafe execvp(path, copies)
        throw CRUDError(.unavailable, "cannot run \(path): \(ErrorNumber.message)")
    }

    /// Beside crudctl (after a build), in its folder (when installed), or else in `$PATH`.
    private var path: String {
        guard let own = Self.ownPath, let slash = own.lastIndex(of: "/") else { return name }
        let directory = own[..<slash]
        return ["\(directory)/\(name)", "\(directory)/\(installedFolder)/\(name)"].first { access($0, X_OK) == 0 }
            ?? name
    }

    private static var ownPath: String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            // The buffer is not empty, so that it has an address.
            unsafe readlink("/proc/self/exe", bytes.assumingMemoryBound(to: CChar.self).baseAddress!, bytes.count)
        }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}
