# frozen_string_literal: true

module Pando
  module Swarm
    # Where the threads of this process stand, on stderr. May be called in a handler of a signal, and so takes no lock
    # and asks no logger.
    #
    # @api private
    module Stacks
      FRAMES = 50

      # @param reason [String, nil]
      def self.write(reason = nil)
        head = "pid #{Process.pid}#{": #{reason}" if reason}"
        text = Thread.list.map { |thread| "#{head}: #{name(thread)}\n#{frames(thread)}" }.join
        $stderr.write(text)
      rescue SystemCallError, IOError
        nil # nobody reads it
      end

      def self.name(thread)
        "#{thread.name || (thread == Thread.main ? "main thread" : "a thread without a name")}, #{thread.status}"
      end

      def self.frames(thread) = Array(thread.backtrace).first(FRAMES).map { |frame| "    #{frame}\n" }.join
      private_class_method :name, :frames
    end
  end
end
