/// What the daemon says to a child.
extension FrameWriter {
    /// Writes the members of `params`.
    typealias WriteParameters = (inout FrameWriter) -> Void

    /// Makes a request the frame.
    mutating func request(_ method: StaticString, number: Int, _ parameters: WriteParameters) {
        begin()
        raw(#"{"id":"#)
        integer(number)
        raw(#","method":""#)
        raw(method)
        raw(#"","params":{"#)
        parameters(&self)
        raw("}}")
        end()
    }

    /// Makes the frame say that the rest of the reply is of no use.
    mutating func interrupt() {
        begin()
        raw(#"{"method":"interrupt"}"#)
        end()
    }
}
