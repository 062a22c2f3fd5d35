# frozen_string_literal: true

module Pando
  class Config
    # What is looked at before and after a fork.
    Settings.group "Fork-safety" do
      setting :self_check,
              type: Types::Truth.new, default: true,
              help: "Each forked process uses what has locks (allocator, loader, resolver, ...) before it is ready.",
              notes: "With a block, `self_check { |server, role| ... }`, it is a hook: a check of your own. " \
                     "See [self-check.md](self-check.md).",
              example: "self_check false"

      setting :self_check_timeout,
              type: Types::Seconds.new, default: 5.0, unit: "seconds", within: :self_check, keyword: :timeout,
              help: "A process that spends this long in one step of its self-check is killed, and the step named."
    end
  end
end
