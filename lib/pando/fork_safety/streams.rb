# frozen_string_literal: true

module Pando
  module ForkSafety
    # Ruby flushes $stdout and $stderr at each fork, and raises IOError instead if one is closed. Used by the processes
    # that fork, and by those that observe their own state.
    module Streams
      # @param stream [Object] $stdout or $stderr: an IO, or any object that the application has put in its place
      # @return [Boolean] whether Ruby cannot fork because it is closed. A StringIO can be flushed all the same.
      def self.prevents_fork?(stream)
        stream.flush if stream.respond_to?(:closed?) && stream.closed?
        false
      rescue StandardError
        true
      end
    end
  end
end
