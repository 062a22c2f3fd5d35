# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/cluster/monitor"
require "pando/http"
require "pando/server"
require "pando/server/payload"
require "pando/swarm/job_handler"
require "pando/doctor/subject/handler"
require_relative "support/payload"

# Whatever can be run in a worker must answer to all that the worker asks of it, the doctor's stage too. The same is
# true of the payload, for all processes of the cluster, and of ChildEvents, for all that Inbox, Reaper and
# Deadlines tell it.
class WorkContractTest < Minitest::Test
  FILES = %w[worker role].map { |name| File.expand_path("../../../lib/pando/cluster/#{name}.rb", __dir__) }.freeze
  ASKED = FILES.flat_map { |path| File.read(path).scan(/@work&?\.(\w+\??)/) }.flatten.uniq.sort.freeze

  [Pando::HTTP::DirectHandler, Pando::HTTP::ReactorHandler, Pando::HTTP::ThreadedHandler, Pando::Swarm::JobHandler,
   Pando::Doctor::Subject::Handler].each do |kind|
    define_method(:"test_#{kind.name.downcase.gsub("::", "_")}") do
      asked = ASKED.map(&:to_sym)
      asked.delete(:serve_out) if kind <= Pando::HTTP::ReactorHandler # the reactor has the listeners, and is told
      assert_empty(asked - kind.public_instance_methods)
      assert_includes([-1, -3, 2], kind.instance_method(:stop).arity, "until when to serve all, and when patience ends")
    end
  end

  def test_what_is_asked_is_found
    assert_operator(ASKED.size, :>, 10)
    assert_operator(asked_of_payload.size, :>, 35)
  end

  def test_the_payload
    assert_empty(asked_of_payload - Pando::Server::Payload.public_instance_methods)
    assert_empty(ClusterSupport::Payload.public_instance_methods(false) - asked_of_payload)
  end

  def test_news_of_children
    assert_operator(told.size, :>, 15)
    assert_empty(told - Pando::Cluster::ChildEvents.public_instance_methods(false))
  end

  private

  def told
    files = Dir[File.expand_path("../../../lib/pando/cluster/**/*.rb", __dir__)]
    named = files.flat_map { |path| File.read(path).scan(/\bpools\.tell\(\w+, :(\w+)|@observer\.(\w+)/) }
    [*named.flatten.compact.map(&:to_sym), *Pando::Cluster::Inbox.const_get(:TEXTS).values].uniq
  end

  def asked_of_payload
    files = Dir[File.expand_path("../../../lib/pando/{cluster,server}/**/*.rb", __dir__)]
    files.flat_map { |path| File.read(path).scan(/(?<!event\.|\*\*)\bpayload\.(\w+\??)/) }.flatten.uniq.map(&:to_sym)
  end
end
