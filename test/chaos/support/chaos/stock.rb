# frozen_string_literal: true

require "support/proc_tree"

module Chaos
  # The resources of the long-lived processes in an idle state: descriptors by kind, and memory. They must be the same
  # before and after the faults.
  class Stock
    # MiB by which the monitor and the reactor may grow.
    GROWTH = { "monitor" => 16, "reactor" => 64 }.freeze

    attr_reader :descriptors, :memory

    # @param roll [Roll] in a steady state
    def initialize(monitor, roll)
      @pids = { "monitor" => monitor, "reactor" => roll.one("reactor"), "mold" => roll.one("mold"),
                **["node mold", "apart mold"].to_h { |role| [role, roll.one(role)] } }.compact
      @descriptors = @pids.transform_values { |pid| Support::ProcTree::Entry.new(pid).descriptor_kinds }
      @memory = @pids.slice(*GROWTH.keys).transform_values do |pid|
        Support::ProcTree::Entry.new(pid).pss_kib / 1024.0
      end
    end

    # @param before [Stock]
    # @return [Array<String>] resources that have increased
    def excess(before)
      [*descriptors.filter_map { |role, kinds| more(role, kinds, before.descriptors[role]) },
       *memory.filter_map { |role, size| grown(role, before.memory[role], size) }]
    end

    private

    # For a mold that may not have existed before.
    def more(role, now, before)
      return unless before

      now.reject { |kind, count| count <= before.fetch(kind, 0) }
         .map { |kind, count| "#{role} has #{count} of #{kind}, and had #{before.fetch(kind, 0)}" }
         .join("; ").then { |text| text unless text.empty? }
    end

    def grown(role, before, now)
      return if now - before <= GROWTH.fetch(role)

      format("%<role>s has grown from %<before>.1f to %<now>.1f MiB", role: role, before: before, now: now)
    end
  end
end
