# frozen_string_literal: true

module Pando
  module ForkSafety
    class Finding
      # What a kind of finding stands for: its usual severity, one line of help, the usual advice.
      Kind = Struct.new(:severity, :help, :advice)
      private_constant :Kind

      # Every kind. docs/doctor.md shows this table; a test compares them.
      # @return [Hash{Symbol => Struct}]
      KINDS = {
        lazy_memory: Kind.new(
          :note, "The first request builds objects and keeps them: each worker makes and holds its own copy.",
          "Build it at boot."
        ),
        lazy_constant: Kind.new(
          :note, "The first request autoloads a constant: each worker loads the file for itself.",
          "Load it at boot: eager_load, or name the constant."
        ),
        lazy_require: Kind.new(
          :note, "The first request requires a file or library: each worker loads it for itself.",
          "Require it at boot."
        ),
        lazy_code: Kind.new(
          :note, "The first request compiles code from text, a template say: each worker compiles it for itself.",
          "Compile it at boot."
        ),
        lazy_method: Kind.new(
          :note, "The first request defines methods: each worker defines its own and empties inline caches.",
          "Define them at boot."
        ),
        growth_per_request: Kind.new(
          :warning, "Each request adds objects that stay: a leak, or a cache without a bound.",
          "Bound it, or let go of what a request has built when it ends."
        ),
        shared_socket: Kind.new(
          :error, "A connected socket is open in two live processes: each reads answers meant for the other.",
          "Close it in before_fork, or open it in after_worker_fork."
        ),
        open_connection: Kind.new(
          :note, "A connection is open in a process that others are forked from: they start with a copy of it.",
          "Close it in before_fork, unless its library replaces inherited copies."
        ),
        shared_pipe: Kind.new(
          :warning, "An end of a pipe is inherited: readers take from each other, and no writer's end is the last.",
          "Close it in before_fork, or open it in after_worker_fork; Pando.keep_io if it is meant to be shared."
        ),
        shared_position: Kind.new(
          :warning, "A file that was read or written is inherited: all processes move one position.",
          "Use pread, open it anew in each process, or close it once it is read."
        ),
        shared_event_source: Kind.new(
          :warning, "An epoll, timerfd, eventfd or the like is inherited: one process takes the events of another.",
          "Make it in after_worker_fork, or on first use in each process."
        ),
        lost_thread: Kind.new(
          :error, "A thread lives when its process is forked, and does not come back in the child: what it does stops.",
          "Register it with Pando, start it in after_worker_fork, or on first use in each process."
        ),
        changed_state: Kind.new(
          :error, "A request changes its process (user, limits, umask, ...): forked from it, all would be changed.",
          "Put it back in the same request, or do it in a process of its own; what each worker is to have, " \
          "set in after_worker_fork."
        ),
        native_thread: Kind.new(
          :warning, "A thread of a native library lives when its process is forked: the child does not have it.",
          "Start the library in after_worker_fork, or call Pando.no_longer_fork_safe! where it is first used."
        ),
        growing_descriptors: Kind.new(
          :warning, "The descriptors of a mold become more and more: each process forked from it inherits them all.",
          "Close what is opened again and again; a mold collects garbage too rarely to do it."
        ),
        library_refuses_refork: Kind.new(
          :warning, "A worker that uses this library is not promoted until you have done what the advice says.",
          "See docs/libraries.md."
        ),
        library_unknown: Kind.new(
          :note, "A loaded library has a C extension, or a version, of which nothing is known.",
          "Look into its documentation for forks."
        ),
        lock_held: Kind.new(
          :error, "A background thread holds a lock during a fork: what it guards is half done in the child.",
          "Stop the thread in before_fork, or wait there for its lock."
        ),
        file_deleted: Kind.new(
          :error, "A finalizer or an at_exit handler of a child deleted a file that its ancestor made and still uses.",
          "Delete it only in the process that made it: compare Process.pid there."
        ),
        random_copied: Kind.new(
          :warning, "A generator of random numbers was copied by a fork: each process draws the same ones.",
          "Use Random.rand or SecureRandom, or make a new one in after_worker_fork."
        ),
        pid_cached: Kind.new(
          :warning, "A constant holds the number of the process that loaded the application; in a child it is wrong.",
          "Ask for Process.pid (or Pando.pid) when it is needed."
        ),
        twin_failed: Kind.new(
          :error, "A test passes in one process and fails in a second one that was forked from the same.",
          "See its message, and what the test shares with other processes: files, descriptors, names."
        ),
        shared_tls: Kind.new(
          :error, "A TLS connection is open in two live processes: the first to use it breaks it.",
          "Close it in before_fork, or connect in after_worker_fork."
        ),
        shared_helper: Kind.new(
          :error, "The pipe to a helper process is open in two live processes: each reads answers meant for the other.",
          "Start the helper in after_worker_fork, one for each process."
        ),
        shared_datagram: Kind.new(
          :note, "A connected datagram socket is open in two live processes: fit for sending, not for reading answers.",
          "If answers are read from it, open it in after_worker_fork."
        ),
        shared_listener: Kind.new(
          :note, "A listening socket of the application's own is open in all processes.",
          "Serve it in a service, or close it in after_worker_fork."
        ),
        shared_file: Kind.new(
          :note, "A file is open in several processes; nobody has moved its position.",
          "Close it once it is read, if it is not needed."
        ),
        inherited_lock: Kind.new(
          :error, "A file locked with flock is inherited: any child can unlock it, or keep it.",
          "Lock it in the process that needs it, or tell Pando.keep_io that it is meant so."
        ),
        request_stuck: Kind.new(
          :error, "A request got no answer in a forked process; often it waits for a lock that a vanished thread " \
                  "held. One that slept or stood still before any refork is a note.",
          "See which line waits, and for what; start what it needs in after_worker_fork."
        ),
        request_failed: Kind.new(
          :error, "A request failed after a refork that had succeeded before.",
          "See the error in the application's log; what it holds from before the fork is the first to suspect."
        ),
        process_lost: Kind.new(
          :error, "A mold or worker died or never became ready.",
          "The reason and the application's log say more."
        ),
        refork_failed: Kind.new(
          :error, "The next generation did not come.",
          "See the reason; a hook that raises or a process that may not be forked are the usual ones."
        ),
        fork_unsafe: Kind.new(
          :warning, "The application said that a process must not be forked: it is never promoted.",
          "Start what makes it unsafe later, or in a service."
        ),
        exit_handler: Kind.new(
          :error, "An at_exit handler runs at the end of each child, not only in the process that registered it.",
          "Compare Process.pid in it, or use before_worker_exit."
        ),
        signal_handler_lost: Kind.new(
          :error, "A signal handler that was set while the application was loaded does not hold in workers.",
          "Set it in after_worker_ready, unless the server needs the signal itself."
        )
      }.each_value(&:freeze).freeze
    end
  end
end
