# frozen_string_literal: true

require "support/proc_tree"

module Chaos
  # The resources of the long-lived processes in an idle state: descriptors by kind, and memory. They must be the same
  # before and after the faults, apart from those for children.
  class Stock
    # MiB by which the monitor and the reactor may grow.
    GROWTH = { "monitor" => 16, "reactor" => 64 }.freeze
    # The monitor has one of each for a child.
    OF_A_CHILD = ["socket", "anon_inode:[pidfd]"].freeze

    attr_reader :descriptors, :memory, :children

    # @param roll [Roll] in a steady state
    def initialize(monitor, roll)
      @pids = { "monitor" => monitor, "reactor" => roll.one("reactor"), "mold" => roll.one("mold"),
                **["node mold", "apart mold"].to_h { |role| [role, roll.one(role)] } }.compact
      @descriptors = @pids.transform_values { |pid| Support::ProcTree::Entry.new(pid).descriptor_kinds }
      @children = roll.pids.size
      @memory = @pids.slice(*GROWTH.keys).transform_values do |pid|
        Support::ProcTree::Entry.new(pid).pss_kib / 1024.0
      end
    end

    # @param before [Stock]
    # @return [Array<String>] resources that have increased
    def excess(before)
      [*descriptors.filter_map { |role, kinds| more(role, kinds, allowed(role, before)) },
       *memory.filter_map { |role, size| grown(role, before.memory[role], size) }]
    end

    private

    # A mold that was released before may be there now.
    # @return [Hash{String => Integer}, nil] descriptors by kind; nil: the process was not there before
    def allowed(role, before)
      kinds = before.descriptors[role]
      return kinds unless role == "monitor"

      OF_A_CHILD.reduce(kinds) { |all, kind| { **all, kind => all.fetch(kind, 0) + children - before.children } }
    end

    def more(role, now, allowed)
      return unless allowed

      now.reject { |kind, count| count <= allowed.fetch(kind, 0) }
         .map { |kind, count| "#{role} has #{count} of #{kind}, and may have #{allowed.fetch(kind, 0)}" }
         .join("; ").then { |text| text unless text.empty? }
    end

    def grown(role, before, now)
      return if now - before <= GROWTH.fetch(role)

      format("%<role>s has grown from %<before>.1f to %<now>.1f MiB", role: role, before: before, now: now)
    end
  end
end
