# frozen_string_literal: true

require "test_helper"
require "pando/http"

# The request path has two of each: one in direct mode, one behind the reactor. Whatever the code asks of one of them,
# the other one must answer as well, with the same arguments.
class HTTPContractsTest < Minitest::Test
  HTTP = Pando::HTTP
  FOLDER = File.expand_path("../../../lib/pando/http", __dir__)

  # What files ask of an object that has one of these names there.
  def self.asked(files, names)
    code = files.map { |name| File.read(File.join(FOLDER, "#{name}.rb")).gsub(/^ *#.*/, "") }.join
    found = code.scan(/(?<![\w.])(?:#{names.join("|")})&?\.(\w+[?!]?)(?: (=)(?![=~]))?/)
    found.map { |name, setter| :"#{name}#{setter}" }.uniq
  end

  CLIENT = asked(%w[connection client_handle response response_head stream], %w[@client client @detached])
  READER = asked(%w[connection], %w[reader])
  BODY = asked(%w[connection], %w[body @body]) - %i[respond_to?]

  { [HTTP::SocketClient, HTTP::LaneClient, HTTP::ForwardedClient, HTTP::DetachedClient] => CLIENT,
    [HTTP::SocketReader, HTTP::LaneReader] => READER,
    [HTTP::Spool, HTTP::ReceivedBody, HTTP::StreamedBody] => BODY }.each do |kinds, asked|
    asked.each do |name|
      define_method(:"test_#{kinds.first.name.split("::").last}_and_its_like_answer_#{name}") do
        kinds.each { |kind| assert_includes kind.public_instance_methods, name, kind.name }
        arguments = kinds.map { |kind| kind.instance_method(name).arity }.reject(&:negative?).uniq

        assert_operator arguments.size, :<=, 1, "#{name} takes #{arguments.join(" or ")} arguments"
      end
    end
  end

  # Of handlers see WorkContractTest, which knows what a worker asks of them.
  def test_handlers_are_alike
    own = [HTTP::DirectHandler, HTTP::ReactorHandler].map { |kind| kind.public_instance_methods - Object.instance_methods }

    assert_equal %i[accept serve_out], (own.first - own.last).sort, "the reactor has the listeners"
    assert_empty own.last - own.first
  end

  # The comment at the head of Client is where one looks.
  def test_the_contract_of_clients_is_written_down
    text = File.read(File.join(FOLDER, "client.rb"))[/\A.*?^    module Client$/m]
    shared = HTTP::Client.instance_methods

    assert_empty(CLIENT.reject { |name| shared.include?(name) || text.include?(name.to_s.delete_suffix("=")) })
  end

  def test_what_is_asked_is_found
    assert_operator CLIENT.size, :>, 15, CLIENT.inspect
    assert_operator READER.size, :>, 4, READER.inspect
    assert_equal %i[close input size], BODY.sort
  end
end
