# frozen_string_literal: true

module Pando
  class Batch
    # What nobody waits for goes to stderr.
    #
    # @api private
    module Complaint
      # @param what [String] @param error [Exception]
      # @return [nil]
      def self.make(what, error)
        warn "pando: #{what} #{error.full_message(highlight: false)}"
      rescue IOError, SystemCallError
        nil # there is no stderr
      end
    end

    # It takes nothing new: it is quiet, or has been stopped.
    class Closed < Error
      def initialize(message = "the batch takes nothing new: it is quiet or has been stopped") = super
    end

    # There is no room, and who asks must not wait for it.
    class Full < Error
      def initialize(message = "the batch is full, and one of its own threads cannot wait for room") = super
      def passing? = true
    end

    # The thread that did the item has ended in the middle of it: by Thread#kill or Thread.exit.
    class ThreadKilled < Error
      def initialize(message = "the thread was killed in the middle of the item") = super
    end
  end
end
