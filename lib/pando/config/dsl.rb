# frozen_string_literal: true

require "pando/config/units"
require "pando/config/settings"
require "pando/hooks"

# What `self` is in a config file: one method for each setting and each hook,
# `on`, `service` and `node`. It only says where the file called it and passes on
# what was written to the Recorder.
#
#   workers 4
#   timeout 20, grace: 2
#   after_worker_fork { |server, worker| Database.connect }
#   on("worker.killed") { |event| Alerts.send(event) }
#   service(:mailer) { |service| Mailer.deliver until service.wait(1) }
#   node :sidekiq, count: 2, concurrency: 5, require: "./jobs.rb"
#
# Opened without its namespace around it, for the file's constants are looked
# up from here: an application's Settings must not turn out to be ours.
#
# @api private
class Pando::Config::DSL
  using Pando::Config::Units

  # @param recorder [Recorder]
  def initialize(recorder)
    @recorder = recorder
  end

  Pando::Config::Settings.file_names.each do |name|
    define_method(name) do |*values, **options, &block|
      @recorder.setting(name, values, options, block, caller_locations(1, 1).first)
    end
  end

  # Not in the file, but whoever tries shall read why.
  Pando::Config::Settings.all.select(&:flag_only?).each do |setting|
    define_method(setting.name) do |*values|
      @recorder.flag_only(setting, values, caller_locations(1, 1).first)
    end
  end

  (Pando::Hooks::NAMES - Pando::Config::Settings.file_names).each do |name|
    define_method(name) do |*values, &block|
      @recorder.hook(name, values, block, caller_locations(1, 1).first)
    end
  end

  # Subscribes to an event, in every process that emits it.
  #
  # @param name [String, Symbol] "worker.ready" or :worker_ready
  def on(*name, &block)
    @recorder.on(name, block, caller_locations(1, 1).first)
  end

  # Declares a process with a loop of the user's own.
  #
  # @param name [Symbol]
  def service(*name, &block)
    @recorder.service(name, block, caller_locations(1, 1).first)
  end

  # Declares a kind of job nodes: how many there are, and what runs in them.
  #
  # @param runner [Symbol]
  def node(*runner, **options, &block)
    @recorder.node(runner, options, block, caller_locations(1, 1).first)
  end

  def inspect
    "the config file"
  end

  # A binding in which `self` is this object, Units are active and no local
  # variable is defined. Methods that the file defines belong to this object alone.
  def binding_of_file
    instance_eval { binding }
  end

  private

  def method_missing(name, *)
    @recorder.unknown(name, caller_locations(1, 1).first)
  end

  def respond_to_missing?(*)
    false
  end
end
