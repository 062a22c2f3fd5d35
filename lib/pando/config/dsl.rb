# frozen_string_literal: true

require "pando/config/units"
require "pando/config/settings"
require "pando/hooks"

# `self` in a config file: a method for each setting and each hook, and `on`,
# `service`, `pool` and `node`. Each method passes its arguments and the line that called
# it on to the Recorder.
#
#   workers 4
#   timeout 20, grace: 2
#   after_worker_fork { |server, worker| Database.connect }
#   on("worker.killed") { |event| Alerts.send(event) }
#   service(:mailer) { |service| Mailer.deliver until service.wait(1) }
#   node :sidekiq, count: 2, concurrency: 5, require: "./jobs.rb"
#
# Opened without its namespace around it, because Ruby looks up the file's
# constants from here: `Settings` in the file must not mean Pando's.
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

  # These work only on the command line. In a file they raise an error that says so.
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

  # Declares a service: a process that runs the given block.
  #
  # @param name [Symbol]
  def service(*name, &block)
    @recorder.service(name, block, caller_locations(1, 1).first)
  end

  # Declares a pool of workers for some paths.
  #
  # @param name [Symbol]
  def pool(*name, **options, &block)
    @recorder.pool(name, options, block, caller_locations(1, 1).first)
  end

  # Declares a kind of job node: how many there are, and which runner they run.
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
