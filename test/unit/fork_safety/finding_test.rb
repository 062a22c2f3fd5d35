# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/fork_safety/finding"
require_relative "../../../bin/lib/findings_table"

# What the checks report.
class FindingTest < Minitest::Test
  Finding = Pando::ForkSafety::Finding

  def test_it_takes_severity_and_advice_from_its_kind
    finding = shared_socket

    assert_equal(:error, finding.severity)
    assert_equal(Finding::KINDS.fetch(:shared_socket).advice, finding.advice)
    assert_predicate(finding, :frozen?)
  end

  def test_its_own_severity_and_advice_come_first
    finding = shared_socket(severity: :note, advice: "Nothing to do.")

    assert_equal([:note, "Nothing to do."], [finding.severity, finding.advice])
  end

  def test_its_fingerprint_knows_no_line
    assert_equal(shared_socket(location: "app.rb:3").fingerprint, shared_socket(location: "app.rb:8").fingerprint)
    refute_equal(shared_socket(location: "app.rb:3").fingerprint, shared_socket(location: "job.rb:3").fingerprint)
    refute_equal(shared_socket.fingerprint, shared_socket(subject: "pg").fingerprint)
  end

  def test_it_is_a_hash_that_leaves_out_what_it_does_not_know
    assert_equal(%i[kind severity subject message advice details], shared_socket.to_h.keys)
    assert_equal("app.rb:3", shared_socket(location: "app.rb:3").to_h[:location])
  end

  def test_it_comes_back_from_json
    finding = shared_socket(location: "app.rb:3", details: { count: 2 })
    again = Finding.parse(JSON.parse(JSON.generate(finding.to_h), symbolize_names: true))

    assert_equal(finding.to_h, again.to_h)
    assert_raises(KeyError) { Finding.parse(finding.to_h.merge(kind: "mystery")) }
  end

  def test_another_one_that_differs_in_a_part
    finding = shared_socket(location: "app.rb:3", advice: "Nothing to do.", details: { count: 2 })

    assert_equal(finding.to_h.merge(severity: :note), finding.with(severity: :note).to_h)
  end

  def test_it_is_a_line
    assert_equal("error: Redis is shared (app.rb:3)", shared_socket(location: "app.rb:3").to_s)
    assert_equal("error: Redis is shared", shared_socket.to_s)
  end

  def test_unknown_kinds_and_severities_are_refused
    assert_raises(KeyError) { Finding.new(:mystery, subject: "x", message: "x") }
    assert_raises(ArgumentError) { shared_socket(severity: :fatal) }
  end

  def test_every_kind_says_what_it_is
    Finding::KINDS.each do |name, kind|
      assert_includes(Finding::SEVERITIES, kind.severity, name)
      assert_match(/\A[A-Z].*\.\z/, FindingsTable::HELP.fetch(name), name)
    end
  end

  private

  def shared_socket(subject: "redis", message: "Redis is shared", **more)
    Finding.new(:shared_socket, subject: subject, message: message, **more)
  end
end
