/// The version of this project, which daemon, command-line tool and client library share.
public enum CRUDVersion {
    /// The version in the form of https://semver.org.
    public static let current = "0.1.0"
}
