# frozen_string_literal: true

module Pando
  class Batch
    # Writes errors that no caller gets to stderr.
    #
    # @api private
    module ErrorLog
      # @param what [String] @param error [Exception]
      # @return [nil]
      def self.write(what, error)
        warn "pando: #{what} #{error.full_message(highlight: false)}"
      rescue IOError, SystemCallError
        nil # stderr is closed
      end
    end

    # The batch accepts no new items: it is quiet or stopped.
    class Closed < Error
      def initialize(message = "the batch accepts no new items: it is quiet or stopped") = super
    end

    # There is no room, and the calling thread must not wait for it.
    class Full < Error
      def initialize(message = "the batch is full, and one of its own threads cannot wait for room") = super
      def passing? = true
    end

    # The thread that processed the item ended before the item did: by Thread#kill or Thread.exit.
    class ThreadKilled < Error
      def initialize(message = "the thread was killed while it processed the item") = super
    end
  end
end
