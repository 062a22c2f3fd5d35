# frozen_string_literal: true

require "etc"

module Pando
  module Sys
    # A process as /proc/PID/stat shows it at one moment. The numbers of the fields are those of proc_pid_stat(5).
    class ProcessStat
      # Seconds: the kernel's unit of CPU time.
      TICK = 1.0 / Etc.sysconf(Etc::SC_CLK_TCK)
      # The number of the field after the command's name.
      FIRST = 3
      private_constant :TICK, :FIRST

      # @param pid [Integer, String] "self": this process
      # @return [ProcessStat, nil] nil: it has ended, or /proc hides it
      def self.read(pid)
        new(File.read("/proc/#{pid}/stat"))
      rescue SystemCallError
        nil
      end

      # @param text [String] the file: the command's name may contain anything, also parentheses
      def initialize(text)
        @fields = text.rpartition(")").last.split
      end

      # @return [String] a letter: "R" runs, "D" waits for a disk, "Z" has ended and nobody has waited for it
      def state = field(3)

      # @return [Integer] a pid
      def parent = field(4).to_i

      # @return [Integer] its process group
      def group = field(5).to_i

      # @return [Integer] the foreground process group of its terminal; -1: it has none
      def foreground_group = field(8).to_i

      # @return [Integer] pages that it was given without reading from disk
      def minor_faults = field(10).to_i

      # @return [Float] seconds, user and system
      def cpu_time = (field(14).to_i + field(15).to_i) * TICK

      # @return [Float] seconds, including children that have ended and been waited for
      def tree_cpu_time = cpu_time + ((field(16).to_i + field(17).to_i) * TICK)

      # @return [String]
      def nice = field(19)

      # @return [Integer] when it began, in ticks since the machine's boot
      def started = field(22).to_i

      # @return [String] its real-time level, and its scheduling policy
      def scheduling = "level #{field(40)}, policy #{field(41)}"

      private

      def field(number) = @fields.fetch(number - FIRST)
    end
  end
end
