// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "io/network_json.hh"

#include <istream>

#include <nlohmann/json.hpp>

namespace sim
{

namespace
{

using Json = nlohmann::json;

// One JSON object with the path that led to it: every complaint names both.
class Object
{
      public:
	Object(const Json &json, std::string where) : json_(json), where_(std::move(where))
	{
		if (!json.is_object())
			throw InputError(where_ + ": must be an object");
	}

	template <typename T> void get(const char *key, T &value) const
	{
		if (json_.contains(key))
			need(key, value);
	}

	template <typename T> void need(const char *key, T &value) const
	{
		auto member = json_.find(key);
		if (member == json_.end())
			throw InputError(where_ + ": '" + key + "' is missing");
		if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
			bool fits = member->is_number_integer() &&
				    (std::is_signed_v<T> || member->is_number_unsigned()) &&
				    (!member->is_number_unsigned() ||
					    member->template get<uint64_t>() <=
						    static_cast<uint64_t>(
							    std::numeric_limits<T>::max()));
			if (!fits)
				throw InputError(where_ + ": '" + key + "' is " + member->dump() +
						 "; give an integer from " +
						 std::to_string(std::numeric_limits<T>::min()) +
						 " to " +
						 std::to_string(std::numeric_limits<T>::max()));
		}
		try {
			value = member->template get<T>();
		} catch (const Json::exception &) {
			throw InputError(
				where_ + ": '" + key + "' has the wrong type: " + member->dump());
		}
	}

	// One of a few words; throws with all of them.
	template <typename T>
	void word(const char *key, T &value,
		const std::vector<std::pair<const char *, T>> &words) const
	{
		if (!json_.contains(key))
			return;
		std::string given;
		need(key, given);
		std::string all;
		for (const auto &[name, meaning] : words) {
			if (given == name) {
				value = meaning;
				return;
			}
			all += (all.empty() ? "" : ", ") + std::string(name);
		}
		throw InputError(
			where_ + ": '" + key + "' is '" + given + "'; give one of: " + all);
	}

	template <typename F> void each(const char *key, F f) const
	{
		auto member = json_.find(key);
		if (member == json_.end())
			return;
		if (!member->is_array())
			throw InputError(where_ + ": '" + key + "' must be a list");
		for (size_t i = 0; i < member->size(); i++)
			f(Object((*member)[i], where_ + "." + key + "[" + std::to_string(i) + "]"));
	}

	template <typename F> void inside(const char *key, F f) const
	{
		auto member = json_.find(key);
		if (member != json_.end())
			f(Object(*member, where_ + "." + key));
	}

      private:
	const Json &json_;
	std::string where_;
};

Source read_source(const Object &json)
{
	Source source;
	json.need("name", source.name);
	json.word("kind", source.kind,
		{{"cbr", SourceKind::cbr}, {"poisson", SourceKind::poisson},
			{"on-off", SourceKind::on_off},
			{"pareto-on-off", SourceKind::pareto_on_off}, {"pcap", SourceKind::pcap}});
	json.need("node", source.node);
	json.get("label", source.label);
	json.get("flows", source.flows);
	json.get("gap_ps", source.gap);
	json.get("on_ps", source.on);
	json.get("off_min_ps", source.off_min);
	json.get("off_max_ps", source.off_max);
	json.get("shape", source.shape);
	json.get("random_phase", source.random_phase);
	json.get("path", source.path);
	json.get("loop", source.loop);
	json.get("shares", source.shares);
	json.get("share", source.share);
	json.get("by_flow", source.by_flow);
	json.get("generator", source.generator);
	json.each("sizes", [&](const Object &size) {
		SizeWeight entry = {0, 1};
		size.need("bytes", entry.bytes);
		size.get("weight", entry.weight);
		source.sizes.push_back(entry);
	});
	return source;
}

void read_aggregation(const Object &json, Aggregation &aggregation)
{
	using Mode = Aggregation::Mode;
	json.word("mode", aggregation.mode,
		{{"none", Mode::none}, {"table", Mode::table}, {"queue", Mode::queue}});
	json.each("steps", [&](const Object &step) {
		BatchStep entry = {};
		step.need("from_pps", entry.from_pps);
		step.need("packets", entry.packets);
		aggregation.steps.push_back(entry);
	});
	json.get("window_ps", aggregation.window);
	json.get("weight_ppm", aggregation.weight_ppm);
	json.get("flush_ps", aggregation.flush);
	json.get("burst", aggregation.burst);
	json.get("mtu", aggregation.mtu);
	json.get("frame_overhead", aggregation.frame_overhead);
	json.get("packet_overhead", aggregation.packet_overhead);
	json.get("max_packets", aggregation.max_packets);
}

Node read_node(const Object &json)
{
	Node node;
	json.need("name", node.name);
	json.word("kind", node.kind,
		{{"function", NodeKind::function}, {"fabric", NodeKind::fabric},
			{"sink", NodeKind::sink}});
	json.get("queue_packets", node.queue_packets);
	json.inside("service", [&](const Object &service) {
		service.word("kind", node.service.kind,
			{{"fixed", ServiceKind::fixed}, {"exponential", ServiceKind::exponential}});
		service.get("per_packet_ps", node.service.per_packet);
		service.get("per_byte_ps", node.service.per_byte);
		service.get("per_burst_ps", node.service.per_burst);
		service.get("per_frame_ps", node.service.per_frame);
		service.get("per_sent_ps", node.service.per_sent);
		service.get("per_single_ps", node.service.per_single);
	});
	json.inside("aggregation", [&](const Object &aggregation) {
		read_aggregation(aggregation, node.aggregation);
	});
	json.each("next_hops", [&](const Object &hop) {
		NextHop entry = {};
		hop.need("label", entry.label);
		hop.word("policy", entry.policy,
			{{"round-robin", Policy::round_robin}, {"hash", Policy::hash},
				{"weighted", Policy::weighted}});
		hop.each("choices", [&](const Object &choice) {
			Choice c = {};
			c.weight = 1;
			choice.need("dst", c.dst);
			choice.need("label", c.label);
			choice.get("weight", c.weight);
			entry.choices.push_back(c);
		});
		node.next_hops.push_back(std::move(entry));
	});
	json.each("routes", [&](const Object &route) {
		Route entry = {};
		route.need("dst", entry.dst);
		route.need("links", entry.links);
		node.routes.push_back(std::move(entry));
	});
	return node;
}

Link read_link(const Object &json)
{
	Link link;
	json.need("name", link.name);
	json.need("from", link.from);
	json.need("to", link.to);
	json.need("rate_bps", link.rate_bps);
	json.get("delay_ps", link.delay);
	json.get("gap_bytes", link.gap_bytes);
	json.get("queue_frames", link.queue_frames);
	return link;
}

} // namespace

Network read_network(std::istream &in, const std::string &name)
{
	Json json;
	try {
		json = Json::parse(in);
	} catch (const Json::parse_error &error) {
		throw InputError(name + ": is not JSON: " + error.what());
	}
	Object top(json, name);
	std::string schema;
	top.need("schema", schema);
	if (schema != "convoy.sim.network/1")
		throw InputError(name + ": schema is '" + schema +
				 "', this program reads 'convoy.sim.network/1'");
	Network network;
	top.need("name", network.name);
	top.get("seed", network.seed);
	top.need("duration_ps", network.duration);
	top.get("chunk_ps", network.chunk);
	top.each("nodes", [&](const Object &o) { network.nodes.push_back(read_node(o)); });
	top.each("links", [&](const Object &o) { network.links.push_back(read_link(o)); });
	top.each("sources", [&](const Object &o) { network.sources.push_back(read_source(o)); });
	return network;
}

} // namespace sim
