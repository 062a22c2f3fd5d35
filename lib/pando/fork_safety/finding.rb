# frozen_string_literal: true

module Pando
  module ForkSafety
    # One thing that a fork would break or has cost. The audit of a mold, the self-check, the library
    # table and `pando doctor` report findings. A value: it crosses processes as the Hash of {#to_h}.
    class Finding
      # From data loss and hangs down to what is only good to know.
      SEVERITIES = %i[error warning note].freeze

      # A kind of finding: its usual severity, and the usual advice, which says why the finding matters after a fork and
      # what to do.
      Kind = Struct.new(:severity, :advice)
      private_constant :Kind

      # Every kind. docs/doctor.md shows this table, with a line of bin/lib/findings_table.rb that says what was found.
      # @return [Hash{Symbol => Struct}]
      KINDS = {
        lazy_memory: Kind.new(
          :note, "Each worker builds its own private copy after the fork, while a client waits. Build the objects at " \
                 "boot."
        ),
        lazy_constant: Kind.new(
          :note, "Each worker loads the file again after the fork, into private memory. Load it at boot: call " \
                 "eager_load, or name the constant."
        ),
        lazy_require: Kind.new(
          :note, "Each worker loads it again after the fork, into private memory. Require it at boot."
        ),
        lazy_code: Kind.new(
          :note, "Each worker compiles it again after the fork, into private memory. Compile it at boot."
        ),
        lazy_method: Kind.new(
          :note, "Each worker defines them again after the fork, and each definition empties inline caches. Define " \
                 "them at boot."
        ),
        growth_per_request: Kind.new(
          :warning, "A refork cannot share such memory, and each worker keeps growing. Limit the cache, or drop the " \
                    "objects when the request ends."
        ),
        shared_socket: Kind.new(
          :error, "Both processes read from one stream, so each gets answers meant for the other. Close the " \
                  "connection in before_fork, or open it in after_worker_fork."
        ),
        open_connection: Kind.new(
          :note, "Each child starts with a copy of the connection. Close it in before_fork, unless its library " \
                 "replaces inherited copies."
        ),
        shared_pipe: Kind.new(
          :warning, "Readers take data from each other, and a reader sees no end of file until every process has " \
                    "closed the writing end. Close the pipe in before_fork, or open it in after_worker_fork. If it " \
                    "is shared on purpose, pass it to Pando.keep_io."
        ),
        shared_position: Kind.new(
          :warning, "All processes move one position, so each skips what another has read or written. Use pread, " \
                    "open the file again in each process, or close it once it is read."
        ),
        shared_event_source: Kind.new(
          :warning, "One process takes the events of another. Create it in after_worker_fork, or on first use in " \
                    "each process."
        ),
        lost_thread: Kind.new(
          :error, "Its work silently stops in every child. Register it with Pando::ForkSafety.thread, or start it in " \
                  "after_worker_fork or on first use in each process."
        ),
        changed_state: Kind.new(
          :error, "Every process forked from this one would inherit the change. Undo it in the same request, or make " \
                  "it in a process of its own. Set what each worker needs in after_worker_fork."
        ),
        native_thread: Kind.new(
          :warning, "The child does not have the thread, and a lock that it held stays locked there. Start the " \
                    "library in after_worker_fork, or call Pando.no_longer_fork_safe! where the app first uses it."
        ),
        growing_descriptors: Kind.new(
          :warning, "Each process forked from the mold inherits all of them. Close what the app opens again and " \
                    "again: a mold collects garbage too rarely to do it for you."
        ),
        shared_state: Kind.new(
          :error, "Two requests at once overwrite it, so one sees the data of the other. Keep such data in local " \
                  "variables or in the environment, or let the object's call method begin with `dup`."
        ),
        library_refuses_refork: Kind.new(
          :warning, "Pando does not promote a worker that uses it until you have prepared the library for the fork. " \
                    "See docs/libraries.md."
        ),
        library_unknown: Kind.new(
          :note, "The library may hold threads, locks or connections that break in a child. Read what its " \
                 "documentation says about forks."
        ),
        lock_held: Kind.new(
          :error, "The child does not have the thread, so what the lock guards stays half done there. Stop the " \
                  "thread in before_fork, or wait for its lock there."
        ),
        file_deleted: Kind.new(
          :error, "Every child inherits the handler. Delete the file only in the process that made it: compare " \
                  "Process.pid in the handler."
        ),
        random_copied: Kind.new(
          :warning, "Each process draws the same numbers. Use Random.rand or SecureRandom, or create a new generator " \
                    "in after_worker_fork."
        ),
        pid_cached: Kind.new(
          :warning, "In a child, this pid is the wrong one. Call Process.pid (or Pando.pid) when it is needed."
        ),
        twin_failed: Kind.new(
          :error, "Two workers would disturb each other in the same way. Read the test's message, and look for what " \
                  "the test shares with other processes: files, descriptors, names."
        ),
        shared_tls: Kind.new(
          :error, "The first process that uses it breaks it for the others. Close it in before_fork, or connect in " \
                  "after_worker_fork."
        ),
        shared_helper: Kind.new(
          :error, "Each process reads answers meant for the other. Start one helper per process in after_worker_fork."
        ),
        shared_datagram: Kind.new(
          :note, "Sending works, but an answer may reach the wrong process. If the app reads answers from it, open " \
                 "it in after_worker_fork."
        ),
        shared_listener: Kind.new(
          :note, "Each process that has it open keeps the address in use. Serve it in a service, or close it in " \
                 "after_worker_fork."
        ),
        shared_file: Kind.new(
          :note, "A later read or write would move the position for all of them. If the app no longer needs the " \
                 "file, close it."
        ),
        inherited_lock: Kind.new(
          :error, "Any child can release the lock, or keep it held. Lock the file in the process that needs it. If " \
                  "the lock is shared on purpose, pass the file to Pando.keep_io."
        ),
        request_stuck: Kind.new(
          :error, "Often such a request waits for a lock whose owner, a thread, does not exist after the fork. See " \
                  "which line waits, and for what. Start what the line needs in after_worker_fork."
        ),
        request_failed: Kind.new(
          :error, "Most likely the request uses something that the app holds from before the fork. See the error in " \
                  "the app's log."
        ),
        process_lost: Kind.new(
          :error, "The doctor could not examine this process any further. See the reason above and the app's log."
        ),
        refork_failed: Kind.new(
          :error, "Without a refork, workers share less memory. See the reason above: usually a hook raised, or the " \
                  "process must not be forked."
        ),
        fork_unsafe: Kind.new(
          :warning, "Pando never promotes such a process. Start what makes it unsafe later, or in a service."
        ),
        exit_handler: Kind.new(
          :warning, "Each worker that leaves runs the handler, as with any server that forks. If it should run once " \
                    "only, compare Process.pid in it. If each process needs it, nothing is to be done."
        ),
        signal_handler_lost: Kind.new(
          :error, "Workers do not react to the signal as the app expects. Set the handler in after_worker_ready, " \
                  "unless Pando needs the signal itself."
        )
      }.each_value(&:freeze).freeze

      # @return [Symbol] one of {KINDS}
      attr_reader :kind
      # @return [Symbol] one of {SEVERITIES}
      attr_reader :severity
      # @return [String] what it is about; the same in each run, without pids and descriptor numbers
      attr_reader :subject
      # @return [String, nil] "file:line" that made it
      attr_reader :location
      # @return [String] what was found, for people
      attr_reader :message
      # @return [String, nil] why it matters after a fork, and what to do
      attr_reader :advice
      # @return [Hash{Symbol => Object}] figures of this run, for JSON
      attr_reader :details

      # @param kind [Symbol] @param subject [String] @param message [String]
      # @param severity [Symbol, nil] nil: the kind's own
      # @raise [KeyError] the kind is not in the table
      # @raise [ArgumentError] the severity is unknown
      def initialize(kind, subject:, message:, location: nil, advice: nil, severity: nil, details: {})
        known = KINDS.fetch(kind)
        @kind = kind
        @severity = severity || known.severity
        raise ArgumentError, "no such severity: #{@severity.inspect}" unless SEVERITIES.include?(@severity)

        @subject = subject
        @message = message
        @location = location
        @advice = advice || known.advice
        @details = details
        freeze
      end

      # @api private
      # @param known [Hash{Symbol => Object}] a {#to_h} that may have been JSON
      # @return [Finding]
      # @raise [KeyError] the kind is not in the table
      def self.parse(known)
        kind, severity = known.values_at(:kind, :severity).map(&:to_s)
        new(KINDS.keys.find { |one| one.name == kind }, severity: SEVERITIES.find { |one| one.name == severity },
                                                        **known.except(:kind, :severity))
      end

      # @api private
      # @return [Finding] the same, but for these
      def with(**changes) = Finding.new(kind, **to_h.except(:kind), **changes)

      # The same from run to run, so that a baseline recognizes old findings.
      # @return [String]
      def fingerprint = [kind, subject, location&.sub(/:\d+\z/, "")].compact.join(" ")

      # @return [Hash{Symbol => Object}] for JSON
      def to_h
        { kind: kind, severity: severity, subject: subject, location: location, message: message, advice: advice,
          details: details }.compact
      end

      # @return [String] one line
      def to_s = "#{severity}: #{message}#{" (#{location})" if location}"
    end
  end
end
