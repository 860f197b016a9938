import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataDefinition;
import org.deidentifier.arx.criteria.BasicBLikeness;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EnhancedBLikeness;
import org.deidentifier.arx.criteria.EntropyLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.HierarchicalDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.criteria.OrderedDistanceTCloseness;
import org.deidentifier.arx.criteria.PrivacyCriterion;
import org.deidentifier.arx.criteria.RecursiveCLDiversity;
import org.deidentifier.arx.metric.Metric;

/**
 * Loads a table once, then searches it with ARX once for each line of standard input.
 *
 * <pre>java ArxSearch KEY=VALUE... </pre>
 *
 * <ul>
 * <li>table: a CSV file, separated by semicolons;
 * <li>k, suppression: the number of rows of a class, and the largest share of suppressed rows;
 * <li>loss: entropy, loss or classification;
 * <li>label: the column that classification predicts;
 * <li>sensitive, model, hierarchy: a sensitive column, its privacy model with the parameters, as in
 * "recursive 4 2", and the hierarchy of the column where the model needs one;
 * <li>qi:NAME: the hierarchy of a quasi-identifier, a CSV file.
 * </ul>
 *
 * Each answer is one line, separated by spaces: processor time of the thread that searches in
 * nanoseconds, number of transformations that were checked, information loss, and the level of each
 * quasi-identifier in the order of the arguments. The first line of all is "loaded".
 */
public final class ArxSearch {

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String QUASI = "qi:";

    private ArxSearch() {
        // Has only static methods
    }

    public static void main(String[] arguments) throws IOException {
        Map<String, String> options = new LinkedHashMap<>();
        for (String argument : arguments) {
            int end = argument.indexOf('=');
            options.put(argument.substring(0, end), argument.substring(end + 1));
        }
        Data data = load(options);
        System.out.println("loaded");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (lines.readLine() != null) {
            System.out.println(search(data, options));
        }
    }

    private static Data load(Map<String, String> options) throws IOException {
        Data data = Data.create(options.get("table"), StandardCharsets.UTF_8, ';');
        DataDefinition definition = data.getDefinition();
        data.getHandle(); // reads the table
        for (int column = 0; column < data.getHandle().getNumColumns(); column++) {
            String name = data.getHandle().getAttributeName(column);
            String path = options.get(QUASI + name);
            if (path != null) {
                definition.setAttributeType(name, hierarchy(path));
            } else if (name.equals(options.get("sensitive"))) {
                definition.setAttributeType(name, AttributeType.SENSITIVE_ATTRIBUTE);
            } else {
                definition.setAttributeType(name, AttributeType.INSENSITIVE_ATTRIBUTE);
            }
        }
        if (options.containsKey("label")) {
            definition.setResponseVariable(options.get("label"), true);
        }
        return data;
    }

    private static Hierarchy hierarchy(String path) throws IOException {
        return Hierarchy.create(path, StandardCharsets.UTF_8, ';');
    }

    private static String search(Data data, Map<String, String> options) throws IOException {
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.setSuppressionLimit(Double.parseDouble(options.get("suppression")));
        configuration.addPrivacyModel(new KAnonymity(Integer.parseInt(options.get("k"))));
        if (options.containsKey("model")) {
            configuration.addPrivacyModel(model(options));
        }
        configuration.setQualityModel(metric(options.get("loss")));

        long before = THREADS.getCurrentThreadCpuTime();
        ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
        ARXNode best = result.getGlobalOptimum();
        long spent = THREADS.getCurrentThreadCpuTime() - before;

        StringBuilder answer = new StringBuilder();
        answer.append(spent).append(' ').append(result.getProcessStatistics().getTransformationsChecked());
        answer.append(' ').append(Double.parseDouble(best.getHighestScore().toString()));
        for (String option : options.keySet()) {
            if (option.startsWith(QUASI)) {
                answer.append(' ').append(best.getGeneralization(option.substring(QUASI.length())));
            }
        }
        data.getHandle().release(); // so that the next search may lock it again
        return answer.toString();
    }

    private static Metric<?> metric(String loss) {
        switch (loss) {
            case "entropy":
                return Metric.createEntropyMetric();
            case "loss":
                return Metric.createLossMetric();
            case "classification":
                return Metric.createClassificationMetric();
            default:
                throw new IllegalArgumentException("No loss " + loss);
        }
    }

    private static PrivacyCriterion model(Map<String, String> options) throws IOException {
        String column = options.get("sensitive");
        String[] words = options.get("model").toLowerCase(Locale.ROOT).split(" ");
        double first = Double.parseDouble(words[1]);
        switch (words[0]) {
            case "distinct":
                return new DistinctLDiversity(column, (int) first);
            case "entropy":
                return new EntropyLDiversity(column, first);
            case "recursive":
                return new RecursiveCLDiversity(column, first, Integer.parseInt(words[2]));
            case "equal":
                return new EqualDistanceTCloseness(column, first);
            case "hierarchical":
                return new HierarchicalDistanceTCloseness(column, first, hierarchy(options.get("hierarchy")));
            case "ordered":
                return new OrderedDistanceTCloseness(column, first);
            case "basic":
                return new BasicBLikeness(column, first);
            case "enhanced":
                return new EnhancedBLikeness(column, first);
            default:
                throw new IllegalArgumentException("No privacy model " + words[0]);
        }
    }
}
