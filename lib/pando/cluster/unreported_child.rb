# frozen_string_literal: true

module Pando
  module Cluster
    # Who was forked to order and has not said so: known by the end of the link that it was given,
    # which nobody has but itself and its forker.
    #
    # Used by the monitor, whose children all of them are.
    #
    # @api private
    module UnreportedChild
      # @param inode [Integer] of the child's end of a link
      # @param known [Array<Integer>] the pids of those that have reported
      # @return [Integer, nil] its pid; nil if it has not been born, or where the kernel does not tell
      def self.find(inode, known)
        (children - known).find { |pid| holds?(pid, "socket:[#{inode}]") }
      rescue SystemCallError
        nil
      end

      def self.children = File.read("/proc/self/task/#{Process.pid}/children").split.map(&:to_i)

      def self.holds?(pid, name)
        Dir.each_child("/proc/#{pid}/fd").any? { |fd| what("/proc/#{pid}/fd/#{fd}") == name }
      rescue SystemCallError
        false # it has just ended
      end

      def self.what(descriptor)
        File.readlink(descriptor)
      rescue SystemCallError
        nil # it was closed meanwhile
      end
      private_class_method :children, :holds?, :what
    end
  end
end
