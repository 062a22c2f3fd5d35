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
