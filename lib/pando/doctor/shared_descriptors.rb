# frozen_string_literal: true

require "pando/doctor/process_info"
require "pando/sys"

module Pando
  module Doctor
    # Finds the descriptors that a mold still shares with its workers once the workers have served: a library that
    # reopens its connection after a fork has done so by then. Used by the examination while the processes live.
    #
    # @api private
    class SharedDescriptors
      # `open` is the mold's ProcessInfo::Descriptor, `io` what the mold's Ruby reports of it (nil: it belongs to C
      # code), `holders` the Actors that have it open, `uses` the report of Subject::Use from each worker that used it.
      Shared = Struct.new(:open, :io, :holders, :uses, :socket, :helper, keyword_init: true) do
        # At least two live processes: two workers, or one worker and the process that had used it before the fork.
        def used_by_two? = uses.size >= 2 || uses.any? { |one| one[:before] }

        # @return [String, nil] the line that used it in a worker
        def use_site = uses.filter_map { |one| one[:site] }.first

        # Reads by C code from a pipe or a UNIX socket leave no trace.
        def use_visible? = !io.nil? || !open.link.match?(/\A(?:socket|pipe):/) || !!socket&.tcp?

        # Without the inode, which differs from run to run.
        def link = open.link.sub(/\[\d+\]/, "")

        # @return [String, nil] the line that opened it; for C code, as the second, traced run saw it
        def location(evidence)
          return io[:location] if io&.fetch(:location)

          alike = evidence.origins.select { |one| one[:origin] == "descriptor" && one[:link] == link }
          (alike.find { |one| one[:number] == open.number } || alike.first)&.fetch(:location)
        end
      end

      STDIO = [0, 1, 2].freeze

      # @param evidence [Evidence] @param generation [Evidence::Generation]
      def initialize(evidence, generation)
        @evidence = evidence
        @generation = generation
        @mold = generation.processes[generation.mold]
        @socket_tables = [SocketTable.new(@mold.pid), generation.sockets] if @mold
      end

      # @return [Array<Shared>]
      def all
        @all ||= candidates.filter_map { |open| shared(open) }
      end

      private

      # What the mold had when it forked, except Pando's own, those that `keep_io` names, and the terminal.
      def candidates
        unless @mold && snapshot
          @evidence.could_not("shared descriptors", "the mold of generation #{@generation.number} did not report")
          return []
        end

        spared = snapshot[:own] | snapshot[:kept] | STDIO
        @mold.descriptors.values.reject do |open|
          spared.include?(open.number) || @evidence.ours?(io(open.number)&.fetch(:location)) || terminal?(open)
        end
      end

      def shared(open)
        workers = @generation.processes.except(@generation.mold)
        holders = workers.select { |_, worker| @mold.shares?(open.number, worker) }.keys
        return if holders.empty?

        Shared.new(open: open, io: io(open.number), holders: [@generation.mold, *holders], uses: uses(open),
                   socket: socket(open), helper: helper(open))
      end

      def snapshot
        @snapshot ||= @evidence.snapshots(:fork).find { |one| one[:pid] == @mold.pid && one[:role] == "mold" }
      end

      def io(number) = snapshot[:ios].find { |one| one[:number] == number }
      def uses(open) = @generation.uses.values.filter_map { |used| used.find { |one| one[:number] == open.number } }

      # As it is now, or else as it was before the workers served: the peer may have hung up because they shared it.
      def socket(open)
        return unless open.link.start_with?("socket:")

        seen = @socket_tables.filter_map { |table| table[open.inode] }
        seen.find { |one| one.kind != :idle } || seen.first
      end

      # A copy of a standard stream ($stdout.dup) is shared on purpose.
      def terminal?(open)
        pid = @mold.pid
        STDIO.any? do |number|
          @mold.descriptors[number]&.link == open.link && Sys.open_file_shared?(pid, number, pid, open.number)
        end
      rescue SystemCallError
        false
      end

      # @return [String, nil] the name of a process outside the cluster that holds an end of this pipe too
      def helper(open)
        return unless open.link.start_with?("pipe:")

        ours = @evidence.facts.filter_map { |fact| fact[:pid] }
        group_links.find { |pid, links| !ours.include?(pid) && links.include?(open.link) }&.then do |pid, _|
          File.read("/proc/#{pid}/comm").chomp
        end
      rescue SystemCallError
        nil
      end

      # @return [Hash{Integer => Array<String>}] the descriptors' links of each process of the stage's process group
      def group_links
        @group_links ||= begin
          group = process_group(@mold.pid)
          Dir.children("/proc").grep(/\A\d+\z/).filter_map do |pid|
            next if process_group(pid) != group

            [pid.to_i, Dir.children("/proc/#{pid}/fd").map { |fd| File.readlink("/proc/#{pid}/fd/#{fd}") }]
          rescue SystemCallError
            nil
          end.to_h
        end
      end

      def process_group(pid) = File.read("/proc/#{pid}/stat")[/\) . \d+ (\d+)/, 1]
    end
  end
end
