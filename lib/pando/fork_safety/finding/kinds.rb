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
        )
      }.each_value(&:freeze).freeze
    end
  end
end
