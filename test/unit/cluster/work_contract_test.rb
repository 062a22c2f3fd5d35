# frozen_string_literal: true

require "test_helper"
require "pando/cluster"
require "pando/http"
require "pando/server"
require "pando/swarm/job_handler"
require "pando/doctor/subject/handler"

# A worker knows of its work only what Cluster::Payload#work lists: whatever can be run in one must answer to all that
# a worker asks of it, the doctor's stage too.
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
  end
end
