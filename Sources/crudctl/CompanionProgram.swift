import CRUDClient
import Glibc

/// A program that is installed together with this one, so that crudctl itself needs neither YAML nor plugins.
struct CompanionProgram {
    let name: String
    /// Where it lies from the `bin` that this program is installed in.
    let installedFolder: String

    static let daemon = CompanionProgram(name: "crudd", installedFolder: "../sbin")
    static let pluginHost = CompanionProgram(name: "crudd-plugin-host", installedFolder: "../lib/crudd")

    /// Takes the place of this process.
    ///
    /// - Throws: ``CRUDError`` with `unavailable` if it cannot be run.
    func become(_ arguments: [String]) throws -> Never {
        // The copies live on until another program has taken this one's place.
        let copies = unsafe ([name] + arguments).map { strdup($0) } + [nil]
        let path = path
        unsafe execvp(path, copies)
        throw CRUDError(.unavailable, "cannot run \(path): \(ErrorNumber.message)")
    }

    /// Beside this program (as it was built), in its folder (as it is installed), or else wherever `$PATH` has it.
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
