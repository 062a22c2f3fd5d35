# frozen_string_literal: true

require "pando/native"
require "pando/sys/memory"
require "pando/sys/special_pages"

module Pando
  module Doctor
    # What /proc says of a process: its descriptors, threads and memory. Looked at from outside.
    class Census
      # One descriptor. `link` is what it leads to, `facts` what fdinfo says of it.
      Open = Struct.new(:number, :link, :facts) do
        def flags = facts["flags"].to_s.to_i(8)
        def position = facts["pos"].to_i
        def append? = flags.anybits?(File::APPEND)
        def writable? = flags.anybits?(File::WRONLY | File::RDWR)
        # By a lock that is the open file's: one of POSIX is its process's, and is not inherited.
        def locked? = facts["lock"].to_s.match?(/FLOCK|OFDLCK/)
        def inode = link[/\[(\d+)\]\z/, 1]
        def regular? = link.start_with?("/") && !link.start_with?("/dev/") && !link.start_with?("/proc/")
      end

      attr_reader :pid

      # @param pid [Integer]
      # @return [Census, nil] nil if it is gone
      def self.of(pid)
        new(pid).tap(&:descriptors)
      rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
        nil
      end

      def initialize(pid)
        @pid = pid
      end

      # @return [Hash{Integer => Open}]
      def descriptors
        @descriptors ||= Dir.children("/proc/#{pid}/fd").filter_map { |number| look(number) }.to_h
      end

      # @return [Boolean] whether that process holds the same open file under the same number
      def shares?(number, other)
        mine = descriptors[number]
        theirs = other.descriptors[number]
        return false unless mine && theirs && mine.link == theirs.link

        Sys.open_file_shared?(pid, number, other.pid, number)
      rescue Errno::ENOSYS, Errno::EPERM
        mine.facts.slice("flags", "pos") == theirs.facts.slice("flags", "pos")
      rescue SystemCallError
        false
      end

      # @return [Hash{Integer => String}] comm of each thread by its number
      def tasks
        @tasks ||= Dir.children("/proc/#{pid}/task").to_h do |task|
          [task.to_i, File.read("/proc/#{pid}/task/#{task}/comm").chomp]
        end
      rescue Errno::ENOENT, Errno::ESRCH
        @tasks = {}
      end

      # @return [Hash{Symbol => Integer}] bytes: rss, pss, and uss, what is this process's alone; of its pages the huge
      #   and the merged ones, and what is gained by these
      def memory
        usage = Sys::Memory.usage(pid)
        usage ? { rss: usage.rss, pss: usage.pss, uss: usage.private, **Sys::SpecialPages.of(pid).to_h } : {}
      end

      private

      def look(number)
        link = File.readlink("/proc/#{pid}/fd/#{number}")
        facts = File.read("/proc/#{pid}/fdinfo/#{number}").scan(/^([\w -]+?):\s*(.*)$/).to_h
        [number.to_i, Open.new(number.to_i, link, facts)]
      rescue Errno::ENOENT
        nil
      end
    end
  end
end
