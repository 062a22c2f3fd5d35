# frozen_string_literal: true

require "test_helper"

# docs/architecture.md names files, classes and methods: each of them is there.
class ArchitecturePageTest < Minitest::Test
  STOP = %r{`([\w/]+\.(?:rb|c|h))` `([\w:]+)(?:[#.](\w+[?!=]?))?`}
  FOLDERS = ["lib/pando", "."].freeze

  def stops = File.read(Support::Checkout.path("docs/architecture.md")).scan(STOP).uniq

  def source(file)
    path = FOLDERS.map { |folder| Support::Checkout.path(File.join(folder, file)) }.find { |one| File.exist?(one) }
    File.read(path) if path
  end

  def test_each_stop_is_where_the_page_says
    assert_operator stops.size, :>, 100
    missing = stops.reject { |file, name, method| (text = source(file)) && defines?(text, file, name, method) }

    assert_empty missing
  end

  private

  # In C the name is a function's.
  def defines?(text, file, name, method)
    return text.match?(/^[\w *]*\b#{name}\(/) unless file.end_with?(".rb")

    text.match?(/\b(?:class|module) (?:\w+::)*#{name.split("::").last}\b|\b#{name.split("::").last} = /) &&
      (method.nil? || text.match?(/\bdef (?:self\.)?#{Regexp.escape(method)}(?![\w?!])|attr_\w+ .*:#{method}\b/))
  end
end
