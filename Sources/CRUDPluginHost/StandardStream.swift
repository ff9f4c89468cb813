import Glibc

/// Standard output or standard error, unbuffered: what was said stays said if a plugin brings the process down.
package enum StandardStream: Int32 {
    case output = 1
    case error = 2

    package func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            // The bytes are written before the closure returns.
            let count = unsafe rest.withUnsafeBytes { Glibc.write(rawValue, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
