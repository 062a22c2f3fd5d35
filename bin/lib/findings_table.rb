# frozen_string_literal: true

require "pando/fork_safety/finding"

# Generates the table of findings in docs/doctor.md from their kinds and from a line for each of them here. After a
# change to a kind, write the page anew:
#
#   ruby -Ilib bin/lib/findings_table.rb
module FindingsTable
  PAGE = File.expand_path("../../docs/doctor.md", __dir__)
  BEGINNING = "<!-- kinds -->\n"
  ENDING = "<!-- end of kinds -->\n"

  # The table's column "what it is".
  HELP = {
    lazy_memory: "The first request builds objects and keeps them.",
    lazy_constant: "The first request autoloads a constant.",
    lazy_require: "The first request requires a file or a library.",
    lazy_code: "The first request compiles code from text, such as a template.",
    lazy_method: "The first request defines methods.",
    growth_per_request: "Each request adds objects that stay: a leak, or a cache without a limit.",
    shared_socket: "A connected socket is open in two live processes.",
    open_connection: "A connection is open in a process that is going to be forked.",
    shared_pipe: "One end of a pipe is inherited.",
    shared_position: "A file that was read or written is inherited.",
    shared_event_source: "An epoll, timerfd, eventfd or similar descriptor is inherited.",
    lost_thread: "A thread that runs when its process is forked does not come back in the child.",
    changed_state: "A request changes its process: user, limits, umask and so on.",
    native_thread: "A thread of a native library runs when its process is forked.",
    growing_descriptors: "The number of open descriptors in a mold keeps growing.",
    shared_state:
      "An object that all requests share keeps the environment of the last one. The doctor looks for it if workers " \
      "have threads.",
    library_refuses_refork: "The app uses a library that breaks in a forked process.",
    library_unknown: "Pando knows nothing about a loaded C extension, or about the loaded version of a library.",
    lock_held: "A background thread holds a lock during a fork.",
    file_deleted: "A finalizer or an at_exit handler of a child deleted a file that an ancestor made and still uses.",
    random_copied: "A fork copied a random number generator.",
    pid_cached: "A constant holds the pid of the process that loaded the app.",
    twin_failed: "A test passes in one process and fails in a second one that was forked from the same parent.",
    shared_tls: "A TLS connection is open in two live processes.",
    shared_helper: "The pipe to a helper process is open in two live processes.",
    shared_datagram: "A connected datagram socket is open in two live processes.",
    shared_listener: "A listening socket of the app's own is open in all processes.",
    shared_file: "A file is open in several processes, and none of them has moved its position.",
    inherited_lock: "A file locked with flock is inherited.",
    request_stuck:
      "A request got no response in a forked process. It is a note if the request slept or hung before any refork.",
    request_failed: "A request succeeded before a refork and failed after it.",
    process_lost: "A mold or a worker died or never became ready.",
    refork_failed: "Pando could not start the next generation.",
    fork_unsafe: "The app marked its process as unsafe to fork.",
    exit_handler: "An at_exit handler runs at the end of each child, not only in the process that registered it.",
    signal_handler_lost: "A signal handler that was set while the app was loaded is not in place in workers."
  }.freeze

  # @return [String] in Markdown
  # @raise [KeyError] a kind has no help
  def self.table
    rows = Pando::ForkSafety::Finding::KINDS.map do |name, kind|
      "| `#{name}` | #{kind.severity} | #{HELP.fetch(name)} | #{kind.advice} |\n"
    end
    "| kind | severity | what it is | the usual change |\n|---|---|---|---|\n#{rows.join}"
  end

  # @param page [String]
  # @return [String] the page with the current table
  def self.renew(page)
    page.sub(/#{BEGINNING}.*#{ENDING}/m) { "#{BEGINNING}#{table}#{ENDING}" }
  end
end

File.write(FindingsTable::PAGE, FindingsTable.renew(File.read(FindingsTable::PAGE))) if $PROGRAM_NAME == __FILE__
