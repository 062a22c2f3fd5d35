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
        shared_socket: Kind.new(
          :error, "A connected socket is open in two live processes: each reads answers meant for the other.",
          "Close it in before_fork, or open it in after_worker_fork."
        ),
        shared_pipe: Kind.new(
          :warning, "An end of a pipe is inherited: readers take parts from each other, no writer's end is the last.",
          "Close it in before_fork, or open it in after_worker_fork; Pando.keep_io if it is meant to be shared."
        ),
        shared_position: Kind.new(
          :warning, "A file that was read or written is inherited: all processes move one position.",
          "Use pread, open it anew in each process, or close it once it is read."
        ),
        lost_thread: Kind.new(
          :warning, "A thread that nobody registered lives when its process is forked: the child does not have it.",
          "Register it with Pando, start it in after_worker_fork, or on first use in each process."
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
        )
      }.each_value(&:freeze).freeze
    end
  end
end
