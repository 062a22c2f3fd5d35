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
          :warning, "A thread that nobody registered lives when its process is forked: the child does not have it.",
          "Register it with Pando, start it in after_worker_fork, or on first use in each process."
        ),
        native_thread: Kind.new(
          :warning, "A thread of a native library lives when its process is forked: the child does not have it.",
          "Start the library in after_worker_fork, or call Pando.no_longer_fork_safe! where it is first used."
        ),
        growing_descriptors: Kind.new(
          :warning, "The descriptors of a mold become more and more: each process forked from it inherits them all.",
          "Close what is opened again and again; a mold collects garbage too rarely to do it."
        ),
        library_left_to_you: Kind.new(
          :warning, "A loaded library does not cope with a fork by itself, and Pando cannot do it for you.",
          "See docs/libraries.md."
        ),
        library_unknown: Kind.new(
          :note, "A loaded library has a C extension, or a version, of which nothing is known.",
          "Look into its documentation for forks."
        )
      }.each_value(&:freeze).freeze
    end
  end
end
